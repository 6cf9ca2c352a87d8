import type { ErrorClass } from './errors.js';
import type { DocumentStore } from './pouch.js';
import type { Target } from './states.js';

/** What happened to a document (O3): `create` gives `new`, `delete` gives `deleted`, every other action `updated`. */
export type EventKind = 'new' | 'updated' | 'deleted';

/**
 * What downstream learns of one mutation of one document. Holds no content of the document.
 *
 * Delivered at least once: `id` is the key for deduplication. The events of one document of one store come in the order of
 * its mutations; `sequence` and `index` say that order, `previous` says what must come before. Across the documents of
 * different bulk operations there is no order.
 */
export interface DocumentEvent {
  /** Derived from the store and the mutation's key: the same mutation always has the same id (O1). */
  readonly id: string;
  /** `documents.new.<type>`, `documents.updated.<type>` or `documents.deleted.<type>`. */
  readonly name: string;
  readonly kind: EventKind;
  /** The document's own type; `unknown` where none is known. */
  readonly type: string;
  readonly documentId: string;
  /** The store on the device that made the mutation. */
  readonly store: string;
  /** Sequence number of the bulk operation in its store. */
  readonly sequence: number;
  /** Place of the operation in its bulk operation, from 0. */
  readonly index: number;
  /** The id of the previous event of this document in this store, if that was still kept; else null. */
  readonly previous: string | null;
  /** The mutation's idempotency key. */
  readonly key: string;
  /** The resulting revision: written by the operation, or found by it. Null where none is known. */
  readonly rev: string | null;
  /** Whether the operation changed the document; false when it was already as wanted. */
  readonly changed: boolean;
  /** When the mutation was tried first; milliseconds since 1970, on the device's wall clock. Says nothing about order. */
  readonly at: number;
  readonly target: Target;
  readonly bulkOperationId: string;
  readonly action: string;
}

export interface PublishContext {
  /** A fetch that throws `RetryableError` for what may pass. Credentials go only to the client's own server. */
  readonly fetch: typeof fetch;
  /** The CouchDB database at this address, signed in as the client; what may pass is thrown as `RetryableError`. */
  database(url: string): DocumentStore;
  /** Aborts when the client is closed. */
  readonly signal: AbortSignal;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** What became of the events of one publication. Silence is not success: an event that is named nowhere is sent again. */
export interface PublishAnswer {
  /** Ids of events that are there now, with the same content: stored by this call, or by an earlier one. */
  readonly accepted: readonly string[];
  /** Events whose id is there with other content: they go to quarantine. `stored` is what is there, as far as it is known. */
  readonly conflicts?: readonly { readonly id: string; readonly stored: unknown }[];
  /** Why the others were not taken: shown as the last error. Without it: `refused`. */
  readonly error?: { readonly class?: ErrorClass; readonly code: string; readonly notBeforeMs?: number };
}

/**
 * Brings events somewhere. It is called with up to 100 events in their order, never two of one document. Called again
 * with an event that it took already (after a lost answer, from two tabs at once), it must store it only once.
 */
export interface Publisher {
  /** Under this name the outbox remembers what was published. 1 to 64 of `A-Z a-z 0-9 _ . -`; never used for another place. */
  readonly name: string;
  /**
   * What it needs to work: the client's server, with network and sign-in (`server`, default); any network (`network`); or
   * `nothing`.
   */
  readonly needs?: 'server' | 'network' | 'nothing';
  /**
   * Whether an event of the target `local` waits until the server has its revision (O8). Default: true. Without `server`
   * in the client nothing can be confirmed, and nothing waits.
   */
  readonly afterConfirmation?: boolean;
  /**
   * Throws an error of Afield's (`RetryableError`) for what may pass; all of them are sent again on the ramp then. Where
   * some were accepted before, answer with these and with `error` instead of throwing: they are not sent again.
   */
  publish(events: readonly DocumentEvent[], context: PublishContext): Promise<PublishAnswer>;
  /**
   * For a place that may be made anew, or restored from a backup: a mark of this store that is kept there. When it is
   * gone, or an older one is there, all events since then that are still kept are published once more. Looked at when the
   * client starts, after a failure, and every five minutes. Default: what was accepted counts as there for good.
   */
  readonly marks?: PublisherMarks;
}

/** Keeps one small text at the place of a publisher, for each store. */
export interface PublisherMarks {
  /** The text that is there now; undefined when there is none. Throws as `publish` does. */
  read(store: string, context: PublishContext): Promise<string | undefined>;
  /** Puts another one in its place. False where none can be kept: then nothing is looked for. Throws as `publish` does. */
  leave(store: string, text: string, context: PublishContext): Promise<boolean>;
}
