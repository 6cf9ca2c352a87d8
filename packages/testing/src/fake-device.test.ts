import { createClient, defineDocumentAction, type Client } from '@afield/client';
import { filter, firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { FakeDevice, NothingHappensError } from './fake-device.js';
import type { FakeProcess } from './fake-process.js';

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});

let device: FakeDevice;
const open = ({ PouchDB, environment }: FakeProcess): Client =>
  createClient({ name: 'records', PouchDB, environment, actions: [setColour], jitter: 0 });
const paint = (client: Client, to: string): Promise<unknown> =>
  client.enqueue({ target: 'local', actions: [{ action: 'set-colour', operations: [{ id: 'a', to }] }] });
const done = (client: Client): Promise<unknown> =>
  firstValueFrom(client.bulkOperations$.pipe(filter(([one]) => one?.state === 'done')));
const colour = async (): Promise<unknown> => (await device.database('records').get('a')) as { colour: string };

describe('FakeDevice', () => {
  afterEach(() => device.dispose());

  it('tells a process that was killed nothing of its feeds, and asks nothing for it', async () => {
    device = new FakeDevice();
    const process = device.process();
    const documents = new process.PouchDB('records');
    const heard: string[] = [];
    documents.changes({ since: 'now', live: true }).on('change', ({ id }: { id: string }) => heard.push(id));
    await device.database('records').put({ _id: 'a' });
    await device.inFlight.rest();
    process.kill();
    await device.database('records').put({ _id: 'b' });
    const never = Promise.resolve(documents.changes({ since: 0 })).then(() => heard.push('an answer'));
    await device.inFlight.rest();
    expect(heard).toEqual(['a']);
    await expect(device.until(never)).rejects.toThrow(NothingHappensError);
  });

  it('has one clock with the device that it lives beside, and stores of its own', async () => {
    device = new FakeDevice();
    const other = new FakeDevice({ beside: device });
    const fired: string[] = [];
    other.process().environment.clock?.setTimer(() => {
      // Whoever is at work keeps the time of both.
      void other
        .database('records')
        .put({ _id: 'a' })
        .then(() => fired.push('stored'));
    }, 1000);
    device.process().environment.clock?.setTimer(() => fired.push('later'), 1001);
    await device.clock.advance(2000);
    expect(fired).toEqual(['stored', 'later']);
    expect(other.clock.elapsed).toBe(2000);
    await expect(device.database('records').get('a')).rejects.toMatchObject({ status: 404 });
    await other.dispose();
  });

  it('lets time go on until what a test waits for is there', async () => {
    device = new FakeDevice();
    await device.database('records').put({ _id: 'a' });
    const faulty = { when: { call: 'bulkDocs', database: 'records', times: 3 } } as const;
    device.store.add({ ...faulty, do: { type: 'reject', error: { name: 'UnknownError' } } });
    const client = open(device.process());
    const before = device.clock.elapsed;
    await device.until(paint(client, 'blue'));
    await device.until(done(client));
    expect(await colour()).toMatchObject({ colour: 'blue' });
    expect(device.clock.elapsed - before).toBe(180_000);
    await device.until(client.close());
  });

  it('says so when nothing more will come, and when it takes too long', async () => {
    device = new FakeDevice();
    await expect(device.until(new Promise(() => undefined))).rejects.toThrow(NothingHappensError);
    const tick = (): void => void device.clock.setTimer(tick, 1000);
    tick();
    await expect(device.until(new Promise(() => undefined), 5000)).rejects.toThrow('5000 ms of its time');
  });

  it('ends a process without a word: nothing of it goes on, and a new one takes its lock and its work', async () => {
    device = new FakeDevice();
    await device.database('records').put({ _id: 'a' });
    const release = device.store.add({ when: { call: 'bulkDocs', database: 'records' }, do: { type: 'hang' } });
    const process = device.process();
    const client = open(process);
    await device.until(paint(client, 'blue'));
    await device.inFlight.rest();
    process.kill();
    release();
    let heard = 0;
    const hear = (): void => void (heard += 1);
    void client.documents.get('a').then(hear, hear);
    await device.clock.advance(600_000);
    expect(heard).toBe(0);
    expect(process.timers).toBe(0);
    expect(await colour()).not.toHaveProperty('colour');
    const second = open(device.process());
    await device.until(done(second));
    expect(await colour()).toMatchObject({ colour: 'blue' });
  });

  it('freezes a tab: nothing reaches it, and all of it comes late', async () => {
    device = new FakeDevice();
    await device.database('records').put({ _id: 'a' });
    const process = device.process();
    const seen: string[] = [];
    process.environment.clock.setTimer(() => seen.push(`timer ${String(device.clock.monotonic())}`), 1000);
    process.environment.connectivity.subscribe(() => seen.push('network'));
    process.freeze();
    void new process.PouchDB('records').get('a').then(() => seen.push('answer'));
    device.connectivity.set(false);
    await device.clock.advance(60_000);
    expect(seen).toEqual([]);
    process.thaw();
    await device.inFlight.rest();
    expect([...seen].sort()).toEqual(['answer', 'network', 'timer 60000']);
  });

  it('has databases of its own, also beside another device that calls them the same', async () => {
    device = new FakeDevice();
    await device.database('records').put({ _id: 'a' });
    const other = new FakeDevice();
    await expect(other.database('records').get('a')).rejects.toMatchObject({ status: 404 });
    await other.dispose();
  });

  it('closes the databases of one tab, and another tab goes on with its own', async () => {
    device = new FakeDevice();
    await device.database('records').put({ _id: 'a' });
    const [first, second] = [open(device.process()), open(device.process())];
    await device.until(firstValueFrom(first.status$.pipe(filter(({ leader }) => leader))));
    const closing = first.close();
    await device.until(paint(second, 'blue'));
    await device.until(closing);
    await device.until(done(second));
    expect(await colour()).toMatchObject({ colour: 'blue' });
    const handle = new (device.process().PouchDB)('records');
    await handle.close();
    await expect(handle.get('a')).rejects.toThrow('closed');
  });
});
