import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineAction } from '../actions/define.js';
import { z } from 'zod/mini';
import type { Client, Credentials } from '../model/client.js';
import type { Presence } from '../model/environment.js';
import { RetryableError } from '../model/errors.js';
import { handAction, paint, TestPresence } from '../test-bed.fixture.js';
import { pageAuth } from './page-auth.js';
import { pagePresence } from './page-presence.js';
import { WorkerBed } from './worker-bed.fixture.js';

describe('what a worker knows only from its page', () => {
  let bed: WorkerBed;
  beforeEach(() => {
    bed = new WorkerBed();
  });
  afterEach(() => bed.close());

  const handed = (ids: readonly string[]) =>
    ({ target: 'local', actions: [{ action: 'by-hand', operations: ids.map((id) => ({ id })) }] }) as const;

  describe('credentials', () => {
    const server = 'http://127.0.0.1:1/records';

    it('R12 the page is asked when they are needed, and again when the server refused them', async () => {
      const { page, worker } = bed.endpoints();
      const sent: (string | null)[] = [];
      const client = bed.open({
        server,
        replication: false,
        auth: pageAuth(worker),
        environment: {
          fetch: (_, init) => {
            const authorization = new Headers(init?.headers).get('authorization');
            sent.push(authorization);
            return Promise.resolve(new Response('{}', { status: authorization === 'Bearer new' ? 503 : 401 }));
          },
        },
      });
      bed.serve(client, worker);
      await client.enqueue(paint(['a'], 'blue', { target: 'server' }));
      await bed.rest();
      expect(sent).toEqual([]); // nobody is there to be asked
      const asked: string[] = [];
      bed.connect(page, {
        credentials: (why) => {
          asked.push(why);
          return Promise.resolve({ type: 'bearer', token: why === 'first' ? 'old' : 'new' });
        },
      });
      await bed.until(() => sent.includes('Bearer new'));
      expect(sent[0]).toBe('Bearer old');
      expect(asked).toEqual(['first', 'refused']);
    });

    it('R12 a page that has none, or fails to get some, leaves the client waiting for a sign-in; signedIn() asks again', async () => {
      const { page, worker } = bed.endpoints();
      const sent: (string | null)[] = [];
      const warnings: string[] = [];
      const client = bed.open({
        server,
        replication: false,
        auth: pageAuth(worker),
        environment: {
          warn: (line) => warnings.push(line),
          fetch: (_, init) => {
            sent.push(new Headers(init?.headers).get('authorization'));
            return Promise.resolve(new Response('{}', { status: 503 }));
          },
        },
      });
      bed.serve(client, worker);
      await client.enqueue(paint(['a'], 'blue', { target: 'server' }));
      const held: { credentials?: Credentials } = {};
      const remote = bed.connect(page, {
        credentials: () =>
          held.credentials === undefined
            ? Promise.reject(new Error('the person whose password is secret7 went away'))
            : Promise.resolve(held.credentials),
      });
      let isRequired = false;
      remote.status$.subscribe(({ signInRequired }) => (isRequired = signInRequired));
      await bed.until(() => isRequired);
      expect(sent).toEqual([]);
      expect(warnings.join()).not.toContain('secret7');
      held.credentials = { type: 'bearer', token: 'found' };
      remote.signedIn();
      await bed.until(() => sent.includes('Bearer found'));
      await bed.until(() => !isRequired);
    });

    it('R12 without a function of the page it is told what is missing', async () => {
      const { page, worker } = bed.endpoints();
      const auth = pageAuth(worker);
      bed.connect(page);
      worker.postMessage({ afield: 'here', v: 1, life: 'x' });
      await expect(auth.credentials('first')).rejects.toMatchObject({ code: 'no_credentials' });
    });
  });

  it('R14 a page that becomes visible makes what waits due, though the worker does not hear of it itself', async () => {
    let attempts = 0;
    const failing = defineAction({
      name: 'failing',
      operation: z.looseObject({}),
      run: () => {
        attempts++;
        return Promise.reject(new RetryableError('Not yet.'));
      },
    });
    const presence = new TestPresence();
    const { remote } = bed.pair(bed.open({ actions: [failing] }), { presence });
    await remote.enqueue({ target: 'local', actions: [{ action: 'failing', operations: [{ id: 'a' }] }] });
    await bed.until(() => attempts === 2);
    await bed.rest();
    expect(attempts).toBe(2); // the next one is due in a minute
    presence.set(false);
    await bed.rest();
    bed.clock.advance(0);
    await bed.rest();
    expect(attempts).toBe(2);
    presence.set(true);
    await bed.until(() => attempts === 3);
  });

  describe('presence', () => {
    const noteName = 'afield:clinic:run';

    it('R16 the run is noted in the page before anything is tried, and is unseen the moment the page is left', async () => {
      const { action, calls } = handAction('by-hand');
      const { page, worker } = bed.endpoints();
      const client = bed.open({ actions: [action], environment: { presence: pagePresence(worker) } });
      bed.serve(client, worker);
      await client.enqueue(handed(['a']));
      await bed.rest();
      expect(calls).toEqual([]); // no page has connected
      const presence = new TestPresence();
      const notedWhenTried: (string | undefined)[] = [];
      const remote = bed.connect(page, { presence });
      await bed.until(() => {
        if (calls.length === 1) notedWhenTried.push(presence.noted(noteName));
        return calls.length === 1;
      });
      expect(notedWhenTried).toEqual([expect.stringMatching(/^\S+ visible$/)]);
      presence.set(false);
      // No message has come to the worker and back yet.
      expect(presence.noted(noteName)).toMatch(/ hidden$/);
      await bed.rest();
      presence.set(true);
      await bed.until(() => presence.noted(noteName)?.endsWith(' visible') === true);
      calls[0]?.answer({});
      await remote.close();
      expect(presence.noted(noteName)).toMatch(/ hidden$/);
    });

    it('S7 what another tab has removed, because its person has logged out, does not come back from the worker or the page', async () => {
      const { page, worker } = bed.endpoints();
      const client = bed.open({ environment: { presence: pagePresence(worker) } });
      bed.serve(client, worker);
      const presence = new TestPresence();
      const remote = bed.connect(page, { presence });
      await bed.until(() => presence.noted(noteName)?.endsWith(' visible') === true);
      presence.forget(noteName);
      presence.set(false);
      await bed.rest();
      presence.set(true);
      await bed.rest();
      await remote.close();
      expect(presence.notes.size).toBe(0);
    });

    it('S7 a logout in the worker takes the note of the page with it', async () => {
      const { page, worker } = bed.endpoints();
      const client = bed.open({ environment: { presence: pagePresence(worker) } });
      bed.serve(client, worker);
      const presence = new TestPresence();
      const remote = bed.connect(page, { presence });
      await bed.until(() => presence.noted(noteName) !== undefined);
      let isOver = false;
      const leaving = remote.logout().finally(() => {
        isOver = true;
      });
      await bed.until(() => isOver, 100);
      await leaving;
      expect(presence.notes.size).toBe(0);
    });

    it('R16 nothing runs before the page has said that the run is noted', async () => {
      const { action, calls } = handAction('by-hand');
      let noted: (() => void) | undefined;
      const presence: Presence = {
        visible: () => true,
        subscribe: () => () => undefined,
        noted: () => Promise.resolve(undefined),
        note: () =>
          new Promise<void>((resolve) => {
            noted = resolve;
          }),
      };
      const client = bed.open({ actions: [action], environment: { presence } });
      await client.enqueue(handed(['a']));
      await bed.until(() => noted !== undefined);
      await bed.rest();
      expect(calls).toEqual([]);
      noted?.();
      await bed.until(() => calls.length === 1);
      calls[0]?.answer({});
    });

    it('R16 five stops of the process under a visible page are counted: then the operations run one by one', async () => {
      const presence = new TestPresence();
      const run = async (seesIt: boolean): Promise<string[]> => {
        const { action, calls } = handAction('by-hand');
        const { page, worker } = bed.endpoints();
        const life = bed.openMortal({ actions: [action], environment: { presence: pagePresence(worker) } });
        bed.serve(life.client, worker);
        const remote = bed.connect(page, { presence });
        await bed.until(() => calls.length === 1, 30_000);
        const ids = calls[0]?.ids ?? [];
        if (!seesIt) presence.set(false);
        // The process ends: nobody answers, nobody closes, no message comes any more.
        life.kill();
        page.close();
        void remote.storeId.catch(() => undefined);
        return ids;
      };
      const first = bed.open({ actions: [handAction('by-hand').action], autoStart: false });
      await first.enqueue(handed(['a', 'b']));
      await first.close();
      for (let stop = 0; stop < 5; stop++) {
        presence.isVisible = true;
        expect(await run(false)).toEqual(['a', 'b']);
      }
      for (let stop = 0; stop < 5; stop++) {
        presence.isVisible = true;
        expect(await run(true)).toEqual(['a', 'b']);
      }
      presence.isVisible = true;
      expect(await run(true)).toEqual(['a']);
    });

    it('R16 the page’s note of a run in a lost worker stays as it was: that was a stop', async () => {
      const { page, worker } = bed.endpoints();
      const client = bed.open({ environment: { presence: pagePresence(worker) } });
      const end = bed.serve(client, worker);
      const presence = new TestPresence();
      const lost: unknown[] = [];
      bed.connect(page, { presence, lost: (error) => lost.push(error) });
      await bed.until(() => presence.noted(noteName) !== undefined);
      end();
      await bed.until(() => lost.length === 1);
      expect(presence.noted(noteName)).toMatch(/ visible$/);
    });

    it('a client whose page never comes can be closed all the same', async () => {
      const { worker } = bed.endpoints();
      const client: Client = bed.open({ environment: { presence: pagePresence(worker) } });
      await client.storeId;
      await bed.rest();
      await client.close();
    });
  });
});
