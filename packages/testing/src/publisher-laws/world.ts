import { isObject, wrongOption } from '../laws/asked-laws.js';
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

const functions = ['fetch', 'failNext', 'refuse', 'dispose'] as const satisfies (keyof PublisherWorld)[];

/** Throws `AfieldError` (`invalid_option`) that names what is missing. */
export function checkWorld(made: PublisherWorld): void {
  const wrong = (why: string): Error => wrongOption('publisherLaws', why);
  if (!isObject(made)) throw wrong('`world` must give an object { publisher, stored }');
  const { publisher, stored, secrets } = made as Partial<PublisherWorld>;
  if (!isObject(publisher)) throw wrong('the world has no `publisher`, an object { name, publish }');
  if (typeof publisher.name !== 'string') throw wrong('`publisher.name` of the world must be a text');
  if (typeof publisher.publish !== 'function') throw wrong('`publisher.publish` of the world must be a function');
  if (typeof stored !== 'function')
    throw wrong('the world has no function `stored` that gives the events of the place');
  for (const name of functions) {
    if (made[name] !== undefined && typeof made[name] !== 'function')
      throw wrong(`\`${name}\` of the world must be a function`);
  }
  if (secrets !== undefined && !Array.isArray(secrets)) throw wrong('`secrets` of the world must be a list of texts');
}
