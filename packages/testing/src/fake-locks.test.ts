import { describe, expect, it } from 'vitest';
import { FakeLocks } from './fake-locks.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const forever = (): Promise<void> => new Promise(() => undefined);

describe('FakeLocks', () => {
  it('has one holder per name, the next in line follows', async () => {
    const locks = new FakeLocks();
    const seen: string[] = [];
    let release = (): void => undefined;
    const first = locks.tab().request('store', new AbortController().signal, () => {
      seen.push('first');
      return new Promise((resolve) => (release = resolve));
    });
    const second = locks.tab().request('store', new AbortController().signal, async () => void seen.push('second'));
    await locks.tab().request('other', new AbortController().signal, async () => void seen.push('other'));
    await turn();
    expect(seen).toEqual(['first', 'other']);
    release();
    await Promise.all([first, second]);
    expect(seen).toEqual(['first', 'other', 'second']);
    expect(locks.holder('store')).toBeUndefined();
  });

  it('passes on when the holder dies, and no dead tab ever takes a lock', async () => {
    const locks = new FakeLocks();
    const [dies, waitsAndDies, lives] = [locks.tab(), locks.tab(), locks.tab()];
    void dies.request('store', new AbortController().signal, forever);
    void waitsAndDies.request('store', new AbortController().signal, () => expect.unreachable());
    let held = false;
    void lives.request('store', new AbortController().signal, () => {
      held = true;
      return forever();
    });
    waitsAndDies.die();
    dies.die();
    await turn();
    expect(held).toBe(true);
    expect(locks.holder('store')).toBe(lives);
  });

  it('rejects whoever gives up waiting, and the one behind still gets the lock', async () => {
    const locks = new FakeLocks();
    let release = (): void => undefined;
    const first = locks
      .tab()
      .request('store', new AbortController().signal, () => new Promise((resolve) => (release = resolve)));
    const giveUp = new AbortController();
    const second = locks.tab().request('store', giveUp.signal, () => expect.unreachable());
    let held = false;
    const third = locks.tab().request('store', new AbortController().signal, async () => void (held = true));
    giveUp.abort();
    await expect(second).rejects.toThrow();
    release();
    await Promise.all([first, third]);
    expect(held).toBe(true);
  });
});
