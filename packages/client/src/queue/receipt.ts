import type { DuplicateOperation, EnqueueReceipt } from '../model/client.js';
import { sequenceOf, type Header } from './stored.js';

/** What was queued; `duplicates` were queued before and are no part of it. */
export function receiptOf(header: Header, duplicates: readonly DuplicateOperation[] = []): EnqueueReceipt {
  return { ...common(header), duplicate: false, duplicates };
}

/** All of it was queued before, as this bulk operation. */
export function duplicateReceiptOf(header: Header, duplicates: readonly DuplicateOperation[]): EnqueueReceipt {
  return { ...common(header), duplicate: true, duplicates };
}

function common(header: Header): Pick<EnqueueReceipt, 'bulkOperationId' | 'sequence' | 'key' | 'total'> {
  return { bulkOperationId: header.id, sequence: sequenceOf(header._id), key: header.key, total: header.total };
}
