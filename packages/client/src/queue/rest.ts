import { keyOf, storedKey } from './keys.js';
import type { Queue } from './queue.js';
import { isOutcome, sequenceOf, type Header, type StoredOperation } from './stored.js';

/** An operation that has no outcome, with its place and its own key, as another bulk operation can take it over. */
export interface RestOperation {
  readonly action: string;
  readonly index: number;
  readonly operation: StoredOperation;
}

/** What a bulk operation has not done, in its order. One that was tried says on which revision. */
export async function restOf({ records, contents }: Queue, header: Header): Promise<RestOperation[]> {
  const known = await records.find(sequenceOf(header._id), header.cursor);
  const operations = await contents.operations(header, header.cursor, header.total - header.cursor);
  const actions = header.parts.flatMap(({ action, count }) => Array<string>(count).fill(action));
  return operations.flatMap((operation, place) => {
    const row = known?.rows[place];
    const index = header.cursor + place;
    if (isOutcome(row)) return [];
    const { b, t } = row ?? {};
    const w = { ...(b === undefined ? {} : { b }), ...(t === undefined ? {} : { t }) };
    return [
      {
        action: actions[index] ?? '',
        index,
        operation: {
          ...operation,
          ...storedKey(keyOf(header, operation, index)),
          ...(row?.s === 'intent' ? { w } : {}),
        },
      },
    ];
  });
}
