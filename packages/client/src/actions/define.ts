import type { BatchAction, DocumentAction } from '../model/handler.js';

/** Declares an action that changes documents one by one: three pure functions and a schema. */
export function defineDocumentAction<Content>(action: Omit<DocumentAction<Content>, 'kind'>): DocumentAction<Content> {
  return { ...action, kind: 'document' };
}

/** Declares an action that handles a batch as a whole. It must be idempotent: a batch run again converges (R3). */
export function defineAction<Content>(action: Omit<BatchAction<Content>, 'kind'>): BatchAction<Content> {
  return { ...action, kind: 'batch' };
}
