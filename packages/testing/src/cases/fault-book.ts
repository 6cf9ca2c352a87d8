import type { Before, Fault } from './schema.js';
import { expandValue } from './expand.js';
import type { Database } from './database.js';
import { isObject, ownOf, setOwn, type JsonObject } from './json.js';

/** Whether a fault happens now; `later`: its occurrence is over, but not its time (for `then_reject`). */
export type Now = 'now' | 'later' | undefined;

/** The faults of a case: counts what each one waits for, and says when it happens. */
export class FaultBook {
  readonly #faults: readonly Fault[];
  readonly #elapsedS: () => number;
  readonly #occurrences = new Map<string, number>();
  readonly #reached = new Set<string>();
  #wokeAtS: number | undefined;
  armed: boolean;

  constructor(faults: readonly Fault[], armed: boolean, elapsedS: () => number) {
    this.#faults = faults;
    this.armed = armed;
    this.#elapsedS = elapsedS;
  }

  /** A step has come: ends the faults that last until it. */
  reach(step: string): void {
    this.#reached.add(step);
    if (step === 'sleep') this.#wokeAtS = this.#elapsedS();
  }

  /** When the device woke, in seconds since the start; undefined when it never slept. */
  get wokeAtS(): number | undefined {
    return this.#wokeAtS;
  }

  of<At extends Fault['at']>(at: At): readonly Extract<Fault, { at: At }>[] {
    return this.#faults.filter((fault): fault is Extract<Fault, { at: At }> => fault.at === at);
  }

  /** Counts one occurrence of what the fault waits for (`per` tells several things that one fault waits for apart). */
  occurs(fault: Fault, per = ''): Now {
    if (!this.armed || this.#isOver(fault)) return undefined;
    const key = `${String(this.#faults.indexOf(fault))}:${per}`;
    const occurrence = (this.#occurrences.get(key) ?? 0) + 1;
    this.#occurrences.set(key, occurrence);
    const { nth, from_nth: fromNth, times } = fault.when;
    if (nth !== undefined && occurrence !== nth) return occurrence > nth ? 'later' : undefined;
    if (fromNth !== undefined && occurrence < fromNth) return undefined;
    if (times !== undefined && occurrence >= (fromNth ?? 1) + times) return 'later';
    return 'now';
  }

  #isOver(fault: Fault): boolean {
    const { before_s: beforeS, until } = fault.when;
    if (beforeS !== undefined && this.#elapsedS() >= beforeS) return true;
    if (until === undefined) return false;
    const afterWake = /^wake\+(\d+)$/.exec(until);
    if (afterWake === null) return this.#reached.has(until);
    return this.#wokeAtS !== undefined && this.#elapsedS() >= this.#wokeAtS + Number(afterWake[1]);
  }
}

/** Another actor edits or deletes a document, past all faults. */
export async function editByAnother(before: Before, database: Database): Promise<void> {
  const winner = await database.winner(before._id);
  const doc = winner?.doc ?? { _id: before._id };
  const revision = winner === undefined ? {} : { _rev: winner.rev };
  if (before.$delete === true) return database.write({ _id: before._id, ...revision, _deleted: true });
  await database.write({ ...merged(doc, before.$edit ?? {}), ...revision });
}

/** The document with these fields; `{ "$count": true }` is one more than the last value, from 1. */
export function merged(doc: JsonObject, edit: JsonObject): JsonObject {
  const result = { ...doc };
  for (const [field, value] of Object.entries(edit)) {
    const counts = isObject(value) && value['$count'] === true;
    setOwn(result, field, counts ? Number(ownOf(doc, field) ?? 0) + 1 : expandValue(value, 'edit', [field]));
  }
  return result;
}
