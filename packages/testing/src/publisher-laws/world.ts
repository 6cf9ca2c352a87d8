import type { AuthOptions, DocumentEvent, Publisher } from '@afield/client';

/** A publisher and the place where its events arrive. */
export interface PublisherWorld {
  readonly publisher: Publisher;
  /** What is there now, read past all faults; in the order in which it arrived, where the place knows one. */
  readonly stored: () => Promise<readonly DocumentEvent[]>;
  /** The network to the place; the faults of the suite are put in front of it. Default: the system's fetch. */
  readonly fetch?: typeof fetch;
  /** As for `createClient`: for publishers that use `context.database`. */
  readonly server?: string;
  readonly auth?: AuthOptions;
  /**
   * For a publisher that reaches its place by other ways than `context.fetch` and `context.database`: makes its next call
   * fail before the place gets anything (`before`), or after it has done the work (`after`).
   */
  readonly failNext?: (when: 'before' | 'after') => void;
  /** From now on the place refuses this event for good. Without it that is not checked. */
  readonly refuse?: (eventId: string) => void;
  /** Texts that no error may hold: passwords, tokens. */
  readonly secrets?: readonly string[];
  /** Ends what was started for this world. */
  readonly dispose?: () => unknown;
}
