import { keyOf } from '../queue/keys.js';
import type { Header, StoredOperation } from '../queue/stored.js';

/** Up to a hundred consecutive operations of one action. */
export interface Batch {
  readonly from: number;
  readonly action: string;
  readonly operations: readonly BatchOperation[];
}

export interface BatchOperation {
  /** Place in its bulk operation. */
  readonly index: number;
  readonly key: string;
  /** Where its key comes from (see `keyOf`). */
  readonly origin?: string;
  /** As it came: it may be no id at all. */
  readonly id: unknown;
  readonly content: unknown;
}

/** Cuts a batch from these operations: it ends before a second operation on a document that it already has (R10). */
export function batchOf(
  header: Pick<Header, 'key' | 'derived'>,
  action: string,
  from: number,
  stored: readonly StoredOperation[],
  whole: boolean,
): Batch {
  const seen = new Set<string>();
  const operations: BatchOperation[] = [];
  for (const operation of stored) {
    const id = operation.i;
    if (typeof id === 'string') {
      if (!whole && seen.has(id)) break;
      seen.add(id);
    }
    const index = from + operations.length;
    operations.push({ index, ...keyOf(header, operation, index), id, content: operation.c });
  }
  return { from, action, operations };
}
