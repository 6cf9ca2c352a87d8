import type { DocumentEvent } from '../model/event.js';
import type { Doc } from '../model/json.js';
import { operationHash, valueHash } from './content-hash.js';
import { storedKey, takenKey, type MutationKey } from './keys.js';
import type { NewQuarantineEntry } from './quarantine.js';
import type { TakenSecond } from './quarantine-control.js';
import { secondOperation } from './quarantined.js';
import type { Header, StoredOperation, StoredQuarantine } from './stored.js';

/** An operation whose document was there already, with other content (O5). */
export interface DocumentConflict {
  readonly index: number;
  readonly action: string;
  readonly mutation: MutationKey;
  readonly id: string;
  readonly content: unknown;
  /** The document as it was found. */
  readonly found: Doc;
}

/** Both versions of a document: as it was found, and as the operation wanted it. */
export function documentConflict(
  header: Pick<Header, 'id' | 'target' | 'lane'>,
  conflict: DocumentConflict,
): NewQuarantineEntry {
  const { index, action, mutation, id, content, found } = conflict;
  const operation: StoredOperation = { i: id, ...storedKey(mutation), c: content };
  const { target, lane } = header;
  return {
    kind: 'create',
    key: mutation.key,
    bulkOperationId: header.id,
    index,
    first: JSON.stringify(found),
    second: JSON.stringify(operation),
    content: undefined,
    as: { target, lane, action },
    hash: operationHash(target, { action, operation }),
    against: `${mutation.origin}:${found._rev ?? ''}`,
  };
}

/**
 * The operation of a conflict about a document, as it is queued when a person lets it count: on the revision that the
 * person has seen. It takes over the failure of this name, if that is still open.
 */
export function takenOperation(entry: StoredQuarantine, failure: string | undefined): TakenSecond | undefined {
  const { as, key, hash, first } = entry;
  if (as === undefined) return undefined;
  const { target, lane, action } = as;
  const operation = secondOperation(entry);
  const { _rev } = JSON.parse(first ?? '{}') as { _rev?: string };
  const c = action === 'create' && _rev !== undefined ? { ...(operation.c as object), replaces: _rev } : operation.c;
  const f = failure === undefined ? {} : { f: failure };
  const taken = { ...operation, ...storedKey(takenKey(key, hash)), c, ...f };
  return { target, lane, entries: [{ action, operation: taken }] };
}

/** Both versions of an event: as the publisher's place has it, and ours, as a document (O6). */
export function eventConflict(
  publisher: string,
  event: Pick<DocumentEvent, 'id' | 'key' | 'bulkOperationId' | 'index'>,
  doc: Doc,
  stored: unknown,
): NewQuarantineEntry {
  return {
    kind: 'event',
    key: event.key,
    bulkOperationId: event.bulkOperationId,
    index: event.index,
    first: textOf(stored),
    second: JSON.stringify({ publisher, event: doc }),
    content: undefined,
    as: undefined,
    hash: valueHash(doc),
    against: `${publisher}:${event.id}`,
  };
}

/** What a publisher shows of its place is an app's: what JSON cannot hold is kept there, and holds up no event here. */
function textOf(stored: unknown): string {
  try {
    return (JSON.stringify(stored) as string | undefined) ?? 'null';
  } catch {
    return 'null'; // a BigInt, or something that contains itself
  }
}
