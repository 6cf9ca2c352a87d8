import { afterEach, describe, expect, it } from 'vitest';
import { RetryableError } from '../model/errors.js';
import { Queue } from '../queue/queue.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { RetryPolicy } from '../retry/policy.js';
import { rampOfR2 } from '../retry/ramp.js';
import { Scheduler } from '../retry/scheduler.js';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import { Transfer, type Errand } from './transfer.js';

interface Parcels {
  readonly sent: number;
  readonly behind: readonly string[];
}

/** Brings parcels one by one. Those whose names begin with `stuck` stay behind. */
class Post {
  readonly parcels: string[] = [];
  readonly brought: string[] = [];
  readonly tried: string[] = [];
  isDown = false;
  /** What happens while a parcel is on its way. */
  during: () => void = () => undefined;

  errand(): Errand<Parcels, { name: string; isRetry: boolean }> {
    const fresh = ({ sent }: Parcels): Promise<{ name: string; isRetry: boolean } | undefined> => {
      const name = this.parcels[sent];
      return Promise.resolve(name === undefined ? undefined : { name, isRetry: false });
    };
    return {
      name: 'push',
      initial: { sent: 0, behind: [] },
      parse: (json) => json as Parcels,
      fresh,
      left: () => this.parcels.length - this.brought.length,
      next: async (data) => {
        const [first] = data.behind;
        return (await fresh(data)) ?? (first === undefined ? undefined : { name: first, isRetry: true });
      },
      carry: ({ name, isRetry }, { sent, behind }) => {
        this.tried.push(name);
        this.during();
        if (this.isDown) throw new RetryableError('Nothing goes through.', { class: 'network', code: 'reset' });
        const isStuck = name.startsWith('stuck');
        if (!isStuck) this.brought.push(name);
        const others = behind.filter((one) => one !== name);
        return Promise.resolve({
          data: { sent: isRetry ? sent : sent + 1, behind: isStuck ? [...others, name] : others },
          transferred: isStuck ? 0 : 1,
          behind: isStuck || others.length > 0,
          ...(isStuck && isRetry ? { error: new RetryableError('It is stuck.'), isPartial: true } : {}),
        });
      },
    };
  }
}

describe('a transfer of which single ones stay behind', () => {
  const closing: AbortController[] = [];
  afterEach(() => {
    for (const one of closing.splice(0)) one.abort();
  });
  const PouchDB = memoryPouch();
  const open = (post: Post, name: string, clock = new ManualClock()) => {
    const closed = new AbortController();
    closing.push(closed);
    const scheduler = new Scheduler(clock, () => 0);
    const transfer = new Transfer(post.errand(), {
      queue: new Queue(new LocalDatabase(() => new PouchDB(name))),
      scheduler,
      policy: new RetryPolicy(rampOfR2, 0, () => 0),
      clock,
      gate: { state: () => 'open', failed: () => undefined },
      closed: closed.signal,
      changed: () => undefined,
      warn: () => undefined,
    });
    return { transfer, clock, scheduler, close: () => closed.abort() };
  };

  it('R10 what is new goes at once while one that stayed behind waits for its time, which does not move', async () => {
    const post = new Post();
    post.parcels.push('a', 'stuck', 'b');
    const { transfer, clock } = open(post, 'post');
    await transfer.resume();
    await transfer.idle();
    clock.advance(0);
    await transfer.idle();
    expect(post.brought).toEqual(['a', 'b']);
    const { state, nextAttemptAt, failedAttempts } = transfer.status();
    expect(state).toBe('waiting-retry');
    const tried = post.tried.filter((name) => name === 'stuck').length;
    clock.advance(10_000);
    post.parcels.push('c', 'd');
    transfer.poke();
    await transfer.idle();
    expect(post.brought).toEqual(['a', 'b', 'c', 'd']);
    expect(post.tried.filter((name) => name === 'stuck')).toHaveLength(tried);
    expect(transfer.status()).toMatchObject({ state: 'waiting-retry', nextAttemptAt, failedAttempts, transferred: 4 });
    post.parcels.push('stuck-too');
    transfer.poke();
    await transfer.idle();
    clock.advance(60_000);
    await transfer.idle();
    expect(post.tried.filter((name) => name === 'stuck')).toHaveLength(tried + 1);
    expect(post.tried.filter((name) => name === 'stuck-too')).not.toHaveLength(0);
  });

  it('V1 what is left is said as soon as it is heard of, before anything is looked at', () => {
    const post = new Post();
    const { transfer, close } = open(post, 'heard');
    expect(transfer.status().left).toBeUndefined();
    post.parcels.push('a', 'b');
    transfer.poke();
    expect(transfer.status()).toMatchObject({ state: 'idle', left: 2 });
    close();
  });

  it('R14 an event during an attempt that fails then starts the next one', async () => {
    const post = new Post();
    post.parcels.push('a');
    post.isDown = true;
    const { transfer, clock, scheduler } = open(post, 'overtaken');
    await transfer.resume();
    await transfer.idle();
    clock.advance(0);
    await transfer.idle();
    expect(transfer.status()).toMatchObject({ state: 'waiting-retry', failedAttempts: 2 });
    post.during = () => {
      scheduler.wake();
    };
    clock.advance(60_000);
    await transfer.idle();
    post.isDown = false;
    clock.advance(0);
    await transfer.idle();
    expect(post.brought).toEqual(['a']);
  });

  it('R10 so it does after a restart; and a failure of everything makes all wait', async () => {
    const post = new Post();
    post.parcels.push('stuck');
    const first = open(post, 'restarted');
    await first.transfer.resume();
    await first.transfer.idle();
    first.clock.advance(0);
    await first.transfer.idle();
    first.close();
    const second = open(post, 'restarted', first.clock);
    post.parcels.push('a');
    await second.transfer.resume();
    await second.transfer.idle();
    expect(post.brought).toEqual(['a']);
    expect(second.transfer.status().state).toBe('waiting-retry');
    post.isDown = true;
    post.parcels.push('b');
    second.transfer.poke();
    await second.transfer.idle();
    post.isDown = false;
    const tried = post.tried.length;
    second.transfer.poke();
    await second.transfer.idle();
    expect(post.tried).toHaveLength(tried);
    expect(second.transfer.status().lastError).toMatchObject({ class: 'network' });
    second.clock.advance(400_000);
    await second.transfer.idle();
    expect(post.brought).toEqual(['a', 'b']);
  });
});
