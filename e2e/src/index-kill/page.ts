/* The page that is killed while it builds an index. It says what the index reads before the index gets it. */
import { createClient, defineIndex, type Client } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { tellProblems } from '../real-browser/tell-problems.js';
import { isDeleted, person, places, rowText, type Person } from './documents.js';
import { killedName, undisturbedName, type Config, type Told } from './messages.js';

const config = (await (await fetch('/config')).json()) as Config;

async function tell(told: Told): Promise<void> {
  await fetch('/told', { method: 'POST', body: JSON.stringify(told) });
}
tellProblems((problem) => void tell({ problem }));

type Pouch = InstanceType<typeof PouchDB>;
interface Page {
  readonly results: readonly { readonly id: string; readonly deleted?: boolean }[];
}

const open = (): Pouch => new PouchDB(killedName);
const byPlace = defineIndex({ name: 'by-place', version: 1, keys: (doc) => places(doc as object as Person) });

/** The documents, with each page of their changes told before the index gets it. */
function watched(by: string): Pouch {
  const documents = open();
  const changes = documents.changes.bind(documents);
  let isFirst = true;
  const told = async (page: Page): Promise<Page> => {
    await tell({ read: page.results.map(({ id }) => id), by });
    const [first, ...rest] = page.results;
    if (!isFirst || first === undefined || by !== killedName || config.mistake !== 'lost-row') return page;
    isFirst = false;
    return { ...page, results: [{ ...first, deleted: true }, ...rest] };
  };
  return Object.assign(documents, {
    changes: (options: { live?: boolean }) => {
      const asked = changes(options);
      if (options.live === true) return asked;
      return Object.assign(Promise.resolve(asked as PromiseLike<Page>).then(told), { on: () => undefined });
    },
  });
}

/** A client of this name. All have the same documents. */
function clientOf(name: string): Client {
  const constructor = function (database: string, options?: object): Pouch {
    return database === killedName ? watched(name) : new PouchDB(database, options);
  };
  return createClient({
    name,
    documents: killedName,
    PouchDB: Object.assign(constructor, { replicate: PouchDB.replicate }) as unknown as typeof PouchDB,
    actions: [],
    indexes: [byPlace],
    autoStart: false,
  });
}

async function write(documents: Pouch): Promise<void> {
  for (let from = 0; from < config.documents; from += 1000) {
    const those = Array.from({ length: Math.min(1000, config.documents - from) }, (_, next) => from + next);
    const answers = (await documents.bulkDocs(those.map(person))) as { id: string; rev: string }[];
    const deleted = those.flatMap((at, place) => (isDeleted(at) ? (answers[place] ?? []) : []));
    await documents.bulkDocs(deleted.map(({ id, rev }) => ({ _id: id, _rev: rev, _deleted: true })));
  }
}

async function build(name: string): Promise<Client> {
  const client = clientOf(name);
  await client.index(byPlace.name).build();
  return client;
}

async function rowsOf(client: Client): Promise<string[]> {
  const { rows } = await client.index(byPlace.name).query({});
  return rows.map(({ key, id }) => rowText(String(key), id));
}

async function work(): Promise<void> {
  if (config.task === 'write') return write(open());
  if (config.mistake === 'from-start') await removeIndex();
  const killed = await build(killedName);
  if (config.task === 'build') return;
  await tell({ rows: await rowsOf(killed), of: killedName });
  await tell({ rows: await rowsOf(await build(undisturbedName)), of: undisturbedName });
}

async function removeIndex(): Promise<void> {
  const names = (await indexedDB.databases()).flatMap(({ name }) => name ?? []);
  for (const name of names.filter((one) => one.startsWith(`${killedName}-afield-index-`))) {
    await new Promise((resolve) => {
      indexedDB.deleteDatabase(name).onsuccess = resolve;
    });
  }
}

const { update_seq: sequence } = (await open().info()) as { update_seq: number };
await tell({ alive: true, sequence });
await work();
await tell({ done: config.task });
