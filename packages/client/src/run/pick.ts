import { endStates } from '../model/states.js';
import type { Target } from '../model/states.js';
import { sequenceOf, type Header } from '../queue/stored.js';

/** The first bulk operation of a target that may run now. Headers come in the order of their sequence numbers. */
export function pick(
  headers: readonly Header[],
  target: Target,
  mayRun: (header: Header, sequence: number) => boolean,
): Header | undefined {
  const held = new Held();
  for (const header of headers) {
    if (endStates.has(header.state)) continue;
    const isHeld = held.holds(header);
    if (header.target === target && !isHeld && mayRun(header, sequenceOf(header._id))) return header;
    held.add(header);
  }
  return undefined;
}

/** What bulk operations that are not at their end hold back: later ones that share a lane or a subject (R17). */
class Held {
  readonly #lanes = new Set<string>();
  readonly #subjects = new Map<Target, Set<number> | 'all'>();

  holds(header: Header): boolean {
    if (header.lane !== null && this.#lanes.has(header.lane)) return true;
    const held = this.#subjects.get(header.target);
    if (held === undefined) return false;
    if (held === 'all' || header.subjects === null) return true;
    return header.subjects.some((subject) => held.has(subject));
  }

  add(header: Header): void {
    if (header.lane !== null) this.#lanes.add(header.lane);
    const held = this.#subjects.get(header.target);
    if (header.subjects === null || held === 'all') this.#subjects.set(header.target, 'all');
    else {
      const subjects = held ?? new Set<number>();
      for (const subject of header.subjects) subjects.add(subject);
      this.#subjects.set(header.target, subjects);
    }
  }
}
