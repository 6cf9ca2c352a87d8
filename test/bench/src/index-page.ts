/* A local index and a PouchDB view with the same keys, over the same documents. */
import { createClient, defineIndex, type Client } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
// @ts-expect-error -- PouchDB's parts come without types
import mapreduce from 'pouchdb-mapreduce';
import { LongTasks, median, timed, type Times } from './measure.js';

interface Place {
  readonly _id: string;
  readonly parent?: Place;
}

interface ViewRow {
  readonly id: string;
}

/** The database with views. */
interface Viewed {
  query(view: string, options: object): Promise<{ rows: readonly ViewRow[] }>;
  put(doc: object): Promise<unknown>;
  bulkDocs(docs: readonly object[]): Promise<unknown>;
  get(id: string): Promise<object>;
  close(): Promise<void>;
}

(PouchDB as unknown as { plugin(part: unknown): void }).plugin(mapreduce);
const open = (round: number): Viewed => new PouchDB(nameOf(round)) as unknown as Viewed;

const count = 50_000;
const perHousehold = 20;
const households = Math.ceil(count / perHousehold);
const queries = 300;
const atOnce = 10;
const writes = 20;

const nameOf = (round: number): string => `bench-index-${String(round)}`;
const padded = (kind: string, at: number): string => `${kind}-${String(at).padStart(6, '0')}`;

/** 20 people in a household, 50 households in an area, 10 areas in a district. */
function household(at: number): Place {
  const area = Math.floor(at / 50);
  const district = { _id: padded('district', Math.floor(area / 10)) };
  return { _id: padded('household', at), parent: { _id: padded('area', area), parent: district } };
}

/** About 300 bytes. In the order of the ids neighbours are of different households. */
function person(at: number): { _id: string } {
  const _id = padded('person', at);
  return {
    _id,
    ...{ type: 'person', name: `Person ${_id}`, parent: household(at % households) },
    ...{ sex: at % 2 === 0 ? 'female' : 'male', date_of_birth: '1990-01-01', phone: `+25470${String(at)}` },
    ...{ reported_date: 1_700_000_000_000 + at, notes: 'x'.repeat(40) },
  };
}

function keys({ parent }: { parent?: Place }): string[] {
  const found: string[] = [];
  for (let place = parent; place !== undefined; place = place.parent) found.push(place._id);
  return found;
}

const byPlace = defineIndex({ name: 'by-place', version: 1, keys: (doc) => keys(doc as { parent?: Place }) });
/* Runs inside PouchDB, which reads its text. */
const design = {
  _id: '_design/by-place',
  views: {
    'by-place': { map: 'function (doc) { for (var p = doc.parent; p; p = p.parent) emit(p._id); }' },
  },
};

async function seed(round: number): Promise<Times> {
  const db = open(round);
  for (let at = 0; at < count; at += 1000) {
    await db.bulkDocs(Array.from({ length: Math.min(1000, count - at) }, (_, next) => person(at + next)));
  }
  await db.put(design);
  await db.close();
  return {};
}

/** Milliseconds of a query by key, and of one right after a write that it must see. */
async function queried(
  db: Viewed,
  query: (key: string) => Promise<readonly ViewRow[]>,
  moved: number,
): Promise<{ still: number; written: number }> {
  const step = Math.floor(households / queries);
  // Each key once before it counts: what was just built is still being compacted, and nothing of it was read yet.
  for (let at = 0; at < queries; at += 1) await query(padded('household', at * step));
  const still: number[] = [];
  for (let at = 0; at < queries; at += atOnce) {
    // Several together: the browser's clock is coarser than a query is long.
    const time = await timed(async () => {
      for (let next = at; next < at + atOnce; next += 1) {
        const rows = await query(padded('household', next * step));
        if (rows.length < 10 || rows.length > perHousehold) throw new Error(`A key has ${String(rows.length)} rows.`);
      }
    });
    still.push(time / atOnce);
  }
  const written: number[] = [];
  for (let at = 0; at < writes; at += 1) {
    const id = padded('person', moved + at);
    const to = household(households + moved + at);
    await db.put({ ...(await db.get(id)), parent: to });
    written.push(
      await timed(async () => {
        const rows = await query(to._id);
        if (rows.length !== 1 || rows[0]?.id !== id) throw new Error(`${to._id} does not have ${id}.`);
      }),
    );
  }
  return { still: median(still), written: median(written) };
}

function clientOf(round: number): Client {
  return createClient({ name: nameOf(round), PouchDB, actions: [], indexes: [byPlace], autoStart: false });
}

async function index(round: number): Promise<Times> {
  const client = clientOf(round);
  await client.storeId;
  const local = client.index('by-place');
  const tasks = new LongTasks();
  const build = await timed(() => local.build());
  const longest = await tasks.longest();
  const db = open(round);
  const { still, written } = await queried(db, async (key) => (await local.query(key)).rows, 0);
  await client.close();
  return {
    'index 50,000 documents': build,
    'longest task while indexing': longest,
    'query the index by key': still,
    'query the index after a write': written,
  };
}

async function view(round: number): Promise<Times> {
  const db = open(round);
  const ask = async (options: object): Promise<readonly ViewRow[]> => (await db.query('by-place', options)).rows;
  const tasks = new LongTasks();
  const build = await timed(() => ask({ limit: 1 }));
  const longest = await tasks.longest();
  const { still, written } = await queried(db, (key) => ask({ key }), 1000);
  await db.close();
  return {
    'PouchDB view of 50,000 documents': build,
    'longest task of the view': longest,
    'query the view by key': still,
    'query the view after a write': written,
  };
}

/** What no index can be faster than: the changes, in hundreds, and nothing else. */
async function read(round: number): Promise<Times> {
  const db = new PouchDB(nameOf(round));
  const time = await timed(async () => {
    for (let since: number | string = 0; ;) {
      const page = (await db.changes({ since, limit: 100, include_docs: true, return_docs: true })) as {
        results: unknown[];
        last_seq: number;
      };
      since = page.last_seq;
      if (page.results.length < 100) return;
    }
  });
  await db.close();
  return { 'read the changes in hundreds': time };
}

window.benchSteps = { seed, index, view, read };
