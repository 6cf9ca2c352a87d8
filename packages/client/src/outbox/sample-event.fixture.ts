import type { DocumentEvent } from '../model/event.js';

/** The event of the `number`th mutation of a document, with the one before as its previous. */
export function eventOf(documentId: string, number: number, fields: Partial<DocumentEvent> = {}): DocumentEvent {
  const id = (one: number): string => `s1:o:${documentId}/${String(one)}`;
  return {
    id: id(number),
    name: number === 1 ? 'documents.new.person' : 'documents.updated.person',
    kind: number === 1 ? 'new' : 'updated',
    type: 'person',
    documentId,
    store: 's1',
    sequence: number,
    index: 0,
    previous: number === 1 ? null : id(number - 1),
    key: `${documentId}/${String(number)}`,
    rev: `${String(number)}-abc`,
    changed: true,
    at: 1_767_225_600_000,
    target: 'local',
    bulkOperationId: `b${String(number)}`,
    action: 'set-parent',
    ...fields,
  };
}
