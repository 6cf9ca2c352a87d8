import { BehaviorSubject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Client } from '../model/client.js';
import { AfieldError } from '../model/errors.js';
import type { Locks } from '../model/environment.js';
import type { Endpoint } from './endpoint.js';
import { WorkerBed } from './worker-bed.fixture.js';

describe('a page and its worker', () => {
  let bed: WorkerBed;
  beforeEach(() => {
    bed = new WorkerBed();
  });
  afterEach(() => bed.close());

  const status = new BehaviorSubject('idle');
  const pausing = (pause: () => Promise<void> = () => Promise.resolve()): Client =>
    ({ pause, status$: status.asObservable(), syncNow: () => undefined }) as unknown as Client;
  const never = (): Promise<void> => new Promise(() => undefined);

  it('find each other in both orders, and calls made before are not lost', async () => {
    const early = bed.endpoints();
    const remote = bed.connect(early.page);
    const called = remote.pause('b');
    // The worker hears nothing yet: what was said to it so far is lost.
    early.worker.start();
    await bed.rest();
    bed.serve(pausing(), early.worker);
    await called;

    const late = bed.endpoints();
    bed.serve(pausing(), late.worker);
    // The page hears nothing yet.
    late.page.start();
    await bed.rest();
    await bed.connect(late.page).pause('b');
  });

  it('a worker serves one client: a second one is refused, else each call would be done twice', () => {
    const { worker } = bed.endpoints();
    const end = bed.serve(pausing(), worker);
    expect(() => bed.serve(pausing(), worker)).toThrow(expect.objectContaining({ code: 'already_served' }));
    end();
    bed.serve(pausing(), worker);
  });

  it('what cannot be spoken to is refused, in words: the global object of a SharedWorker', () => {
    const global = new EventTarget() as unknown as Endpoint;
    expect(() => bed.serve(pausing(), global)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
    expect(() => bed.connect(global)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
    for (const none of [undefined, null, 'worker', {}]) {
      expect(() => bed.connect(none as unknown as Endpoint)).toThrow(
        expect.objectContaining({ code: 'invalid_option' }),
      );
    }
  });

  it('messages of the app on the same worker are let through, and are none of ours', async () => {
    const { page, worker } = bed.endpoints();
    const ofTheApp: unknown[] = [];
    const appHears = (event: MessageEvent): void => {
      const { data } = event as { data: { afield?: unknown } | null };
      if (data?.afield === undefined || data.afield === 'something else') ofTheApp.push(data);
    };
    worker.addEventListener('message', appHears);
    page.addEventListener('message', appHears);
    bed.serve(pausing(), worker);
    const remote = bed.connect(page);
    const strange = [
      null,
      'text',
      { afield: 'something else' },
      { kind: 'call', id: 0 },
      { id: 0, kind: 'answer' },
      [],
    ];
    for (const message of strange) {
      page.postMessage(message);
      worker.postMessage(message);
    }
    await remote.pause('b');
    expect(ofTheApp).toHaveLength(2 * strange.length);
    // Half of ours: no port, no version.
    page.postMessage({ afield: 'connect', v: 1, life: 'x', visible: true });
    worker.postMessage({ afield: 'here' });
    await bed.rest();
    await remote.pause('b');
  });

  it('on their own port, what does not have the shape of a message is not done: a call is refused, all else ignored', async () => {
    const { page, worker } = bed.endpoints();
    bed.serve(pausing(), worker);
    const { port1, port2 } = new MessageChannel();
    const answers: unknown[] = [];
    port1.onmessage = ({ data }) => answers.push(data);
    page.postMessage({ afield: 'connect', v: 1, life: 'x', visible: true }, [port2]);
    const call = { kind: 'call', id: 1, asked: { on: 'client', method: 'constructor', args: [] } };
    const subscribe = { kind: 'subscribe', id: 3, observed: { on: 'client', observable: 'constructor' } };
    const odd = [null, 7, {}, { kind: 'call' }, { kind: 'wave', id: 4 }, { kind: 'took', id: 9 }];
    for (const message of [...odd, call, { ...call, asked: { on: 'window' } }, subscribe]) port1.postMessage(message);
    port1.postMessage({ kind: 'call', id: 2, asked: { on: 'client', method: 'pause', args: [] } });
    await bed.until(() => answers.length === 4);
    // Else a page of a newer version would wait for an answer for ever.
    const error = { class: 'AfieldError', fields: { code: 'unknown_call' } };
    expect(answers).toMatchObject([
      { kind: 'refusal', id: 1, error },
      { kind: 'refusal', id: 1, error },
      { kind: 'error', id: 3, error },
      { kind: 'answer', id: 2, value: undefined },
    ]);
    port1.close();
  });

  it('a worker that cannot be loaded is lost: what was called rejects, and what is called later', async () => {
    const failing = new FailingWorker();
    const lost: AfieldError[] = [];
    const remote = bed.connect(failing, { lost: (error) => lost.push(error) });
    const called = remote.pause('b').catch((error: unknown) => error);
    const shown: unknown[] = [];
    remote.status$.subscribe({ error: (error: unknown) => shown.push(error) });
    failing.fail();
    const error = await called;
    expect(error).toBeInstanceOf(AfieldError);
    expect(error).toMatchObject({ code: 'worker_lost' });
    expect(shown).toEqual([error]);
    expect(lost).toEqual([error]);
    await expect(remote.enqueue({ target: 'local', actions: [] })).rejects.toBe(error);
    expect(() => {
      remote.syncNow();
    }).toThrow(error as Error);
    remote.status$.subscribe({ error: (again: unknown) => shown.push(again) });
    expect(shown).toEqual([error, error]);
    // Nothing is left to close.
    await remote.close();
  });

  it('a SharedWorker that cannot be loaded says so itself', async () => {
    const { page } = bed.endpoints();
    const shared = Object.assign(new EventTarget(), { port: page });
    const remote = bed.connect(shared as unknown as Endpoint);
    const called = remote.pause('b');
    shared.dispatchEvent(new Event('error'));
    await expect(called).rejects.toMatchObject({ code: 'worker_lost' });
  });

  it('an error of the app in a worker that serves loses nothing', async () => {
    const { page, worker } = bed.endpoints();
    bed.serve(pausing(), worker);
    const remote = bed.connect(page);
    await remote.pause('b');
    page.dispatchEvent(new Event('error'));
    await remote.pause('b');
  });

  it('a worker that ends later is lost too, as soon as its lock is free', async () => {
    const locks = new SharedLocks();
    const { page, worker } = bed.endpoints();
    const dying = locks.side();
    bed.serve(pausing(never), worker, dying.locks);
    const remote = bed.connect(page, { locks: locks.side().locks });
    const called = remote.pause('b').catch((error: unknown) => error);
    await bed.rest();
    dying.die();
    expect(await called).toMatchObject({ code: 'worker_lost' });
  });

  it('a worker that ends later is lost where an engine says that its port is closed', async () => {
    const { page, worker } = bed.endpoints();
    const end = bed.serve(pausing(never), worker);
    const remote = bed.connect(page);
    const called = remote.pause('b').catch((error: unknown) => error);
    await bed.rest();
    end();
    expect(await called).toMatchObject({ code: 'worker_lost' });
  });

  it('a page that is gone is forgotten as soon as its lock is free', async () => {
    const locks = new SharedLocks();
    const { page, worker } = bed.endpoints();
    bed.serve(pausing(), worker, locks.side().locks);
    const dying = locks.side();
    const remote = bed.connect(page, { locks: dying.locks });
    remote.status$.subscribe({ error: () => undefined });
    await bed.until(() => status.observed);
    dying.die();
    await bed.until(() => !status.observed);
  });

  it('a SharedWorker keeps no lock for a page that is gone, and serves it when it comes again', async () => {
    const locks = new SharedLocks();
    const { page, worker } = bed.endpoints();
    bed.serve(pausing(), worker, locks.side().locks);
    for (let times = 0; times < 3; times++) {
      const dying = locks.side();
      const remote = bed.connect(page, { locks: dying.locks });
      await remote.pause('b');
      expect(locks.size).toBe(2);
      if (times === 1) dying.die();
      else remote.disconnect();
      await bed.until(() => locks.size === 0);
    }
  });

  it('the lock that a page was told of is kept for it, also when another one lets go before it has connected', async () => {
    const locks = new SharedLocks();
    const { page, worker } = bed.endpoints();
    bed.serve(pausing(), worker, locks.side().locks);
    const other = bed.connect(page, { locks: locks.side().locks });
    page.postMessage({ afield: 'knock' });
    await other.pause('b');
    other.disconnect();
    await bed.rest();
    expect(locks.size).toBe(1);
    page.postMessage({ afield: 'connect', v: 1, life: 'gone', visible: true }, [new MessageChannel().port1]);
    await bed.until(() => locks.size === 0);
  });

  it('a worker of another build says so, and does not hang', async () => {
    const { page, worker } = bed.endpoints();
    const remote = bed.connect(page);
    const called = remote.pause('b');
    worker.postMessage({ afield: 'here', v: 2, life: 'x' });
    await expect(called).rejects.toThrow('another version');
  });
});

/** A worker whose script is not there. */
class FailingWorker extends EventTarget {
  postMessage(): void {}
  fail(): void {
    this.dispatchEvent(new Event('error'));
  }
}

/** Locks that two sides share; `die` frees those of one side, as the engine does. */
class SharedLocks {
  readonly #held = new Map<string, { side: object; free(): void }>();
  readonly #waiting = new Map<string, (() => void)[]>();

  get size(): number {
    return this.#held.size;
  }

  side(): { readonly locks: Locks; die(): void } {
    const side = {};
    return {
      locks: { request: (name, signal, whileHeld) => this.#request(side, name, signal, whileHeld) },
      die: () => {
        for (const held of [...this.#held.values()]) if (held.side === side) held.free();
      },
    };
  }

  async #request(side: object, name: string, signal: AbortSignal, whileHeld: () => Promise<void>): Promise<void> {
    signal.throwIfAborted();
    while (this.#held.has(name)) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve]);
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      });
    }
    await new Promise<void>((resolve, reject) => {
      const free = (): void => {
        this.#held.delete(name);
        for (const next of this.#waiting.get(name) ?? []) next();
        this.#waiting.delete(name);
        resolve();
      };
      this.#held.set(name, { side, free });
      whileHeld().then(free, reject);
    });
  }
}
