import type { DocumentEvent } from '../model/event.js';

/**
 * Events by sequence and index within each document and store; documents keep the places that they have in the list. Where
 * one may not pass, `hold` is called for it and for all later ones of its document.
 */
export function inOrderOfTheirDocuments(
  events: readonly DocumentEvent[],
  mayPass: (event: DocumentEvent) => boolean,
  hold: (event: DocumentEvent) => void,
): readonly DocumentEvent[] {
  const documents = new Map<string, DocumentEvent[]>();
  for (const event of events) {
    const key = documentOf(event);
    const own = documents.get(key) ?? [];
    own.push(event);
    documents.set(key, own);
  }
  for (const [key, own] of documents) {
    own.sort((a, b) => a.sequence - b.sequence || a.index - b.index);
    const firstHeld = own.findIndex((event) => !mayPass(event));
    if (firstHeld < 0) continue;
    for (const event of own.slice(firstHeld)) hold(event);
    documents.set(key, own.slice(0, firstHeld));
  }
  // As many places as events: the next place of a document is for its next event.
  return events.flatMap((event) => documents.get(documentOf(event))?.shift() ?? []);
}

function documentOf({ store, documentId }: DocumentEvent): string {
  return JSON.stringify([store, documentId]);
}
