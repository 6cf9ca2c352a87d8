import { createClient, type Client } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { setParent } from '@afield/contacts';
import { filter, firstValueFrom } from 'rxjs';
import { LongTasks, timed, type Times } from './measure.js';

const count = 10_000;
const from = { _id: 'h1', parent: { _id: 'a1', parent: { _id: 'd1' } } };
const to = { _id: 'h2', parent: { _id: 'a2', parent: { _id: 'd1' } } };
const ids = Array.from({ length: count }, (_, at) => `person-${String(at).padStart(6, '0')}`);
const operations = ids.map((id) => ({ id, parent: to, current_parent: from }));

function person(_id: string): object {
  return {
    _id,
    type: 'person',
    name: `Person ${_id}`,
    parent: from,
    reported_date: 1_700_000_000_000,
    patient_id: _id,
    sex: 'female',
    date_of_birth: '1990-01-01',
    notes: 'x'.repeat(60),
  };
}

/** A record for each operation, one transaction, without any library. */
function rawEnqueue(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('operations', { autoIncrement: true });
    opening.onerror = () => {
      reject(opening.error ?? new Error('open'));
    };
    opening.onsuccess = () => {
      const transaction = opening.result.transaction('operations', 'readwrite');
      const store = transaction.objectStore('operations');
      for (const operation of operations) store.add({ ...operation, key: crypto.randomUUID() });
      transaction.oncomplete = () => {
        opening.result.close();
        resolve();
      };
      transaction.onerror = () => {
        reject(transaction.error ?? new Error('write'));
      };
    };
  });
}

async function seed(name: string): Promise<InstanceType<typeof PouchDB>> {
  const db = new PouchDB(name);
  for (let at = 0; at < count; at += 1000) await db.bulkDocs(ids.slice(at, at + 1000).map(person));
  return db;
}

/** `allDocs` and `bulkDocs` in hundreds: no queue, no intent, no outcome. */
async function bareLoop(db: InstanceType<typeof PouchDB>): Promise<void> {
  for (let at = 0; at < count; at += 100) {
    const { rows } = await db.allDocs({ keys: ids.slice(at, at + 100), include_docs: true });
    await db.bulkDocs((rows as { doc: object }[]).map(({ doc }) => ({ ...doc, parent: to })));
  }
}

const done = async (client: Client): Promise<void> => {
  await firstValueFrom(
    client.bulkOperations$.pipe(filter((all) => all.length > 0 && all.every((one) => one.state === 'done'))),
  );
};

/** One round on databases of its own. */
async function round(number: number): Promise<Times> {
  const name = (what: string): string => `bench-${String(number)}-${what}`;
  const times: Times = {};
  times['raw IndexedDB, a record per operation'] = await timed(() => rawEnqueue(name('raw')));

  const documents = await seed(name('afield'));
  await documents.close();
  const client = createClient({ name: name('afield'), PouchDB, actions: [setParent], autoStart: false });
  await client.storeId;
  const enqueuing = new LongTasks();
  times['enqueue 10,000 operations'] = await timed(() =>
    client.enqueue({ target: 'local', actions: [{ action: 'set-parent', operations }] }),
  );
  times['longest task while enqueuing'] = await enqueuing.longest();

  const bare = await seed(name('bare'));
  times['bare loop in hundreds'] = await timed(() => bareLoop(bare));
  await bare.close();

  const applying = new LongTasks();
  times['apply 10,000 set-parent'] = await timed(async () => {
    await client.start();
    await done(client);
  });
  times['longest task while applying'] = await applying.longest();
  await client.close();

  const waiting = createClient({ name: name('waiting'), PouchDB, actions: [setParent], autoStart: false });
  for (let bulk = 0; bulk < 10; bulk++) {
    await waiting.enqueue({ target: 'local', actions: [{ action: 'set-parent', operations }] });
  }
  await waiting.close();
  const empty = new PouchDB(name('empty'));
  await empty.info();
  await empty.close();
  times['open an empty PouchDB'] = await timed(() => new PouchDB(name('empty')).info());
  times['open with 100,000 pending in 10'] = await timed(async () => {
    const again = createClient({ name: name('waiting'), PouchDB, actions: [setParent], autoStart: false });
    await again.storeId;
    await firstValueFrom(again.status$.pipe(filter(({ pending }) => pending === 10 * count)));
  });
  return times;
}

window.benchSteps = { round };
