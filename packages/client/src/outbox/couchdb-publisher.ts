import { DivisibleError } from '../model/errors.js';
import type { DocumentEvent, PublishAnswer, Publisher } from '../model/event.js';
import type { Doc } from '../model/json.js';
import type { DocumentStore } from '../model/pouch.js';
import { sameJson } from '../model/same-json.js';
import { classifyRow, classOfRow } from '../retry/classify.js';
import { readDividing } from '../retry/divide.js';
import { eventDocument } from './event-document.js';
import type { Taking } from './named-options.js';
import { publishErrorOf, shown, type PublishError } from './publish-error.js';
import { checkPublisher } from './publisher-options.js';

export interface CouchdbPublisherOptions {
  /** Address of the database of events, such as `https://couch.example/afield-events`: no credentials, no `?`, no `#`. */
  readonly url: string;
  /** Under this name the outbox remembers what was published there. Default: `couchdb`. */
  readonly name?: string;
}

/**
 * Brings events into a CouchDB database, signed in as the client. The event's id is the document's `_id`: an event that
 * comes again is found there. It is accepted where the stored content is the same, and a conflict where it is another (O6).
 *
 * A mark of each store in a `_local` document of the database tells when it was made anew or restored from a backup: then
 * what it lacks is published again, as far as it is still kept.
 *
 * An event that the database refuses (`forbidden` …) is not accepted: it waits and is tried again, and is never dropped.
 * An event whose document was deleted there after its acknowledgement had got lost is written once more, with the same id:
 * for readers it is a repeat, as at-least-once allows.
 *
 * @throws AfieldError `invalid_option`
 */
export function couchdbPublisher(options: CouchdbPublisherOptions): Publisher {
  checkPublisher(taking, options, 'database');
  const { url, name = 'couchdb' } = options;
  return {
    name,
    needs: 'server',
    publish: (events, context) => publish(events, context.database(url)),
    marks: {
      read: async (store, context) => textOf(await context.database(url).readLocal?.(markName(store, name))),
      leave: async (store, text, context) => {
        const database = context.database(url);
        const there = await database.readLocal?.(markName(store, name));
        const rev = there?.['_rev'];
        const content = { v: 1, text, ...(rev === undefined ? {} : { _rev: rev }) };
        return (await database.writeLocal?.(markName(store, name), content)) === true;
      },
    },
  };
}

const taking: Taking = { what: 'couchdbPublisher', known: ['url', 'name'] satisfies (keyof CouchdbPublisherOptions)[] };

/** The name says nothing of code: a new build of an app finds the mark of the old one. */
const markName = (store: string, name: string): string => `afield-events-v1-${store}-${name}`;

function textOf(there: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const text = there?.['text'];
  return typeof text === 'string' ? text : undefined;
}

async function publish(events: readonly DocumentEvent[], database: DocumentStore): Promise<PublishAnswer> {
  const docs = new Map(events.map((event) => [event.id, eventDocument(event)]));
  const answer = await database.write([...docs.values()]);
  const accepted = new Set<string>();
  const taken: string[] = [];
  const errors: PublishError[] = [];
  for (const row of answer.rows) {
    if (!docs.has(row.id)) continue;
    if (row.ok) accepted.add(row.id);
    else if (row.error === 'conflict') taken.push(row.id);
    else errors.push(refusalOf(row.error));
  }
  const conflicts: { id: string; stored: unknown }[] = [];
  let ended = answer.error;
  try {
    for (const [id, stored] of await documentsAt(database, taken)) {
      if (stored === undefined) errors.push({ class: 'conflict', code: 'conflict' });
      else if (sameJson(contentOf(stored), docs.get(id))) accepted.add(id);
      else conflicts.push({ id, stored: contentOf(stored) });
    }
  } catch (error) {
    ended ??= error;
  }
  if (ended !== undefined) {
    // Where nothing came of the call, its error keeps its type: signing in, the network, a floor of the server's.
    if (accepted.size + conflicts.length + errors.length === 0) throw ended as Error;
    errors.unshift(publishErrorOf(ended));
  }
  return { accepted: [...accepted], conflicts, ...shown(errors) };
}

/**
 * What is there under these ids, in one read; undefined where there is no live document now, or the store will not be
 * asked about it. A document that was deleted since the write is not taken for success: the next attempt writes it.
 */
async function documentsAt(
  database: DocumentStore,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Doc | undefined>> {
  if (ids.length === 0) return new Map();
  const rows = await readDividing(ids, (part) => database.read(part));
  return new Map(
    ids.map((id) => {
      const row = rows.get(id);
      return [id, row === undefined || row instanceof DivisibleError ? undefined : row.doc];
    }),
  );
}

function contentOf(doc: Doc): Doc {
  return Object.fromEntries(Object.entries(doc).filter(([field]) => field !== '_rev')) as unknown as Doc;
}

/** Refused for good or not: an event waits either way (R1), and the code says why. */
function refusalOf(word: string): PublishError {
  const meaning = classifyRow(word);
  return { class: meaning.kind === 'failed' ? 'server' : classOfRow(meaning), code: meaning.code };
}
