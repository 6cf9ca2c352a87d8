/**
 * A conflicting duplicate, with both versions of it (O4, O5, O6):
 * `operation`, `bulk-operation`: the same key was queued again with other content;
 * `create`: the document was there already, with other content;
 * `event`: the place where events go has this id already, with other content.
 */
export type QuarantineKind = 'operation' | 'bulk-operation' | 'create' | 'event';

/** What a person can do with an entry: leave the first as it is, let the second count too, or drop the entry. */
export type QuarantineDecision = 'keep-first' | 'take-second' | 'discard';

/**
 * How an entry was closed: by a person's decision, or, of kind `create`, with its failed operation (R19), which was
 * discarded or retried (perhaps edited). After the latter two `take-second` can still be decided.
 */
export type QuarantineEnd = QuarantineDecision | 'failure-discarded' | 'failure-retried';

/**
 * One conflict. For `operation` both versions are `{ action, target, id, key, content }`; for `bulk-operation` they are
 * `{ target, total, actions: [{ action, operations }] }` with the first 1,000 operations, or `{ target, plan, request }`.
 */
export interface QuarantineEntry {
  /** Names this entry on this device, for `resolveQuarantined`. */
  readonly quarantineId: string;
  readonly kind: QuarantineKind;
  /** The key that both have; for `event` the mutation's key. */
  readonly key: string;
  /** The bulk operation that holds the first version; undefined for a document that came from elsewhere. */
  readonly bulkOperationId: string | undefined;
  /** What counts now (undefined when it is no longer stored): the operation that was queued first, the document as it was found, the event as it is stored. */
  readonly first: unknown;
  /** What was refused. */
  readonly second: unknown;
  /** Milliseconds since 1970, on the wall clock. */
  readonly at: number;
  /**
   * What a person has decided, here or on its failed operation; undefined while it is open. `bulkOperationId` names what was
   * queued by that. Both versions are kept as long as their bulk operation is (`ClientOptions.rememberDays`).
   */
  readonly resolution:
    { readonly decision: QuarantineEnd; readonly at: number; readonly bulkOperationId: string | undefined } | undefined;
}
