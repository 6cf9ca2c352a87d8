import { StoreTooNewError } from '../model/errors.js';
import type { DocumentEvent } from '../model/event.js';
import type { Doc } from '../model/json.js';
import { readEventDocument } from './event-document.js';
import { checkpointOf, textOf, type EventsCheckpoint } from './events-checkpoint.js';
import { changesAfter, documentsOf, presenceOf, stillToCome, type EventsDatabase } from './events-feed.js';
import { inOrderOfTheirDocuments } from './events-order.js';
import { checkNamed, wrongOption, type Taking } from './named-options.js';

export interface ReadEventsOptions {
  /** What the last call gave; undefined to begin. */
  readonly since?: string | undefined;
  /** How many changes are read at most, 1 to 1000. A call can give a few more events. Default: 100. */
  readonly limit?: number;
  /** How long an event waits for its previous one that the database has never heard of. Milliseconds; default: 10 minutes. */
  readonly patienceMs?: number;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

/** What `readEvents` brought. */
export interface EventsRead {
  /** Each id once; those of one document and store in their order. */
  readonly events: readonly DocumentEvent[];
  /** To be stored once the events are dealt with, and given to the next call. A text of at most some 100 kB. */
  readonly since: string;
  /** Whether there is more to read at once. */
  readonly more: boolean;
  /** How many events wait for their previous one. They are in `since`. */
  readonly held: number;
  /** Of `events`: those whose previous event is not in the database (any more), and may never have been read. */
  readonly gaps: readonly { readonly id: string; readonly previous: string }[];
  /** Ids of documents that are meant as events, but have not the shape of one. They are passed over. */
  readonly unreadable: readonly string[];
}

/** More are not kept in a checkpoint: of events that were delivered, and of events that wait. */
const mostSeen = 500;
const mostHeld = 500;

/**
 * Reads the events after `since` from a database of events: a PouchDB, a replica of it, or `new PouchDB(url)`.
 *
 * At least once: an event can come again (a process that died before it stored `since`, a feed that began anew); its `id`
 * is the key. The events of one document and store come by sequence and index, also where the feed of a cluster gives them
 * otherwise (O8). There is no order across documents. See docs/events.md.
 *
 * @throws AfieldError `invalid_since`, `invalid_option`
 * @throws StoreTooNewError an event was written by a newer Afield; nothing was read
 * @throws RetryableError the database did not answer as a CouchDB; and whatever the database itself throws
 */
export async function readEvents(database: EventsDatabase, options: ReadEventsOptions = {}): Promise<EventsRead> {
  checkDatabase(database);
  const { limit, patienceMs, now } = checked(options);
  const checkpoint = checkpointOf(options.since);
  const reading = new Reading(database, checkpoint);
  const { rows, last } = await changesAfter(database, checkpoint.seq, limit);
  for (const doc of await documentsOf(
    database,
    checkpoint.held.map(([id]) => id),
  ))
    reading.take(doc);
  for (const { doc } of rows) if (doc !== undefined) reading.take(doc);
  await reading.findPrevious(last);

  const wall = now();
  const heldSince = new Map(checkpoint.held.map(([id, since]) => [id, Math.min(since, wall)]));
  const held: [string, number][] = [];
  const mayPass = (event: DocumentEvent): boolean => {
    if (!reading.isMissing(event.previous) || held.length >= mostHeld) return true;
    return wall - (heldSince.get(event.id) ?? wall) >= patienceMs;
  };
  const hold = ({ id }: DocumentEvent): void => {
    held.push([id, heldSince.get(id) ?? wall]);
  };
  const events = inOrderOfTheirDocuments(reading.events, mayPass, hold);

  const seen = [...checkpoint.seen, ...events.map(({ id }) => id)].slice(-mostSeen);
  return {
    events,
    since: textOf({ v: 1, seq: last, held, seen }),
    more: rows.length >= limit,
    held: held.length,
    gaps: events.flatMap(({ id, previous }) =>
      previous !== null && reading.isGone(previous) ? [{ id, previous }] : [],
    ),
    unreadable: [...reading.unreadable],
  };
}

const taking: Taking = {
  what: 'readEvents',
  known: ['since', 'limit', 'patienceMs', 'now'] satisfies (keyof ReadEventsOptions)[],
};

function checkDatabase(given: unknown): void {
  const { changes, allDocs } = (given ?? {}) as Partial<Record<keyof EventsDatabase, unknown>>;
  if (typeof changes === 'function' && typeof allDocs === 'function') return;
  throw wrongOption(taking.what, 'the first argument, the database, must be a PouchDB, such as `new PouchDB(url)`');
}

/** The options with their defaults; `since` is read by itself. */
function checked(options: ReadEventsOptions): Required<Omit<ReadEventsOptions, 'since'>> {
  checkNamed(taking, options);
  const { limit = 100, patienceMs = 600_000, now = Date.now } = options;
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
    throw wrongOption(taking.what, '`limit` must be from 1 to 1000');
  }
  if (typeof patienceMs !== 'number' || !(patienceMs >= 0)) {
    throw wrongOption(taking.what, '`patienceMs` must be milliseconds, 0 or more');
  }
  if (typeof now !== 'function') throw wrongOption(taking.what, '`now` must be a function that gives milliseconds');
  return { limit, patienceMs, now };
}

/** The events of one call, and what is known of those before them. */
class Reading {
  readonly #database: EventsDatabase;
  readonly #seen: ReadonlySet<string>;
  readonly #events = new Map<string, DocumentEvent>();
  readonly #deleted = new Set<string>();
  readonly #missing = new Set<string>();
  readonly unreadable = new Set<string>();

  constructor(database: EventsDatabase, { seen }: EventsCheckpoint) {
    this.#database = database;
    this.#seen = new Set(seen);
  }

  get events(): readonly DocumentEvent[] {
    return [...this.#events.values()];
  }

  take(doc: Doc): void {
    const reading = readEventDocument(doc);
    if (reading.kind === 'too-new') throw new StoreTooNewError(`The event ${JSON.stringify(doc._id)}`, reading.v);
    if (reading.kind === 'damaged') this.unreadable.add(doc._id);
    if (reading.kind === 'event' && !this.#seen.has(doc._id)) this.#events.set(doc._id, reading.event);
  }

  /**
   * Looks for the events before these. One that is still to come in the feed after `last` is taken now: the feed of a
   * cluster has no order. One that is there, and not to come, was read by an earlier call.
   */
  async findPrevious(last: number | string): Promise<void> {
    const asked = new Set<string>();
    for (;;) {
      const wanted = [...new Set(this.events.flatMap(({ previous }) => previous ?? []))].filter(
        (id) => !this.#events.has(id) && !this.#seen.has(id) && !this.unreadable.has(id) && !asked.has(id),
      );
      if (wanted.length === 0) return;
      for (const id of wanted) asked.add(id);
      // In this order: what arrives in between is to come.
      const presence = await presenceOf(this.#database, wanted);
      for (const [id, state] of presence) {
        if (state === 'deleted') this.#deleted.add(id);
        if (state === 'unknown') this.#missing.add(id);
      }
      const live = wanted.filter((id) => presence.get(id) === 'live');
      for (const { doc } of await stillToCome(this.#database, last, live)) if (doc !== undefined) this.take(doc);
    }
  }

  /** The database has never heard of it: it may be on its way, to a replica for example. */
  isMissing(previous: string | null): boolean {
    return previous !== null && this.#missing.has(previous);
  }

  isGone(id: string): boolean {
    return this.#missing.has(id) || this.#deleted.has(id);
  }
}
