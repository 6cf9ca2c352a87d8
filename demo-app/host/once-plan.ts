import type { ActionPart } from '@afield/client';
import { mustFail, mustFailCodes } from '../src/must-fail.js';
import type { StoredDocument } from './couch.js';

export interface OncePlan {
  readonly parts: readonly ActionPart[];
  /** All operations of all parts. */
  readonly queued: number;
  /** The person that the device takes out of every place, which the server refuses. */
  readonly refusedId: string;
  /** Codes of the operations that must fail, sorted. */
  readonly codes: readonly string[];
  /** Each of them in words with its code. */
  readonly onPurpose: readonly string[];
}

/** Which place moves where: the first pair that is among the documents. */
export const moves = [
  { id: 'place:health_center_2', targetId: 'place:district_2' },
  { id: 'place:riverside', targetId: 'place:south' },
] as const;

const inWords = [
  'a record that does not exist',
  'a person who is expected in a place where nobody is',
  'an operation that names no record',
  'a person without a place, which only the server refuses',
  'another record that does not exist',
] as const;

/** Puts five operations that must fail among the moves. */
export function withFailures(
  parts: readonly ActionPart[],
  documents: ReadonlyMap<string, StoredDocument>,
  targetId: string,
): OncePlan {
  const moved = new Set(parts.flatMap(({ operations }) => operations.map(({ id }) => id)));
  const others = [...documents.values()].filter(({ _id, type }) => type === 'person' && !moved.has(_id));
  const [refused, guarded] = others;
  if (!refused || !guarded) throw new Error('The data needs two persons outside of the place that moves.');
  const failing = mustFail(guarded._id, refused._id, targetId);
  const all = parts.map((part) => {
    if (part.action !== 'set-parent') return part;
    // In the second batch, which is under way when the page is reloaded: a failure must outlive that too.
    const place = Math.min(150, Math.floor(part.operations.length / 2));
    const operations = [...part.operations.slice(0, place), ...failing, ...part.operations.slice(place)];
    return { ...part, operations };
  });
  const queued = all.reduce((sum, { operations }) => sum + operations.length, 0);
  const onPurpose = inWords.map((words, place) => {
    const { id } = failing[place] ?? {};
    return `${mustFailCodes[place] ?? ''}: ${words}${id === undefined ? '' : ` (${String(id)})`}`;
  });
  return { parts: all, queued, refusedId: refused._id, codes: [...mustFailCodes].sort(), onPurpose };
}
