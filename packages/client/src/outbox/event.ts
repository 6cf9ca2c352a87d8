import type { DocumentEvent, EventKind } from '../model/event.js';
import { eventIdNamed, eventIdOf, keyOf } from '../queue/keys.js';
import { hasEvent, sequenceOf, type Header, type RowState, type StoredOperation } from '../queue/stored.js';
import { partAt } from '../queue/parts.js';

/**
 * The event of one operation, rebuilt from what is durable: header, operation and outcome. Undefined: it has none (yet).
 */
export function eventOf(
  storeId: string,
  header: Header,
  index: number,
  operation: StoredOperation | undefined,
  row: RowState | undefined,
): DocumentEvent | undefined {
  if (operation === undefined || !hasEvent(row) || typeof operation.i !== 'string') return undefined;
  const { action } = partAt(header, index);
  const [kind, documentId] = row.e ?? [kindOf(action), operation.i];
  const type = row.t ?? 'unknown';
  const mutation = keyOf(header, operation, index);
  // What a file has brought is known by its name in the store where it was queued.
  const { store, sequence } = header.origin ?? { store: storeId, sequence: sequenceOf(header._id) };
  const storeBefore = row.ps === '' ? storeId : (row.ps ?? store);
  return {
    id: eventIdOf(store, mutation),
    name: `documents.${kind}.${type}`,
    kind,
    type,
    documentId,
    store,
    sequence,
    index,
    previous: row.p === undefined ? null : eventIdNamed(storeBefore, row.p),
    key: mutation.key,
    rev: row.r ?? null,
    changed: row.s === 'applied',
    at: row.a,
    target: header.target,
    bulkOperationId: header.id,
    action,
  };
}

/** `create` gives new, `delete` deleted, every other updated (O3). */
function kindOf(action: string): EventKind {
  if (action === 'create') return 'new';
  return action === 'delete' ? 'deleted' : 'updated';
}
