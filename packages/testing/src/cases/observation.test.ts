import type { BulkOperationStatus, ClientStatus } from '@afield/client';
import { describe, expect, it } from 'vitest';
import { Observation } from './observation.js';
import type { Tab } from './tab.js';

type Listener = (value: unknown) => void;

/** A tab whose client shows what the test says. */
function shown(): {
  tab: Tab;
  kill(): void;
  bulk(...all: Partial<BulkOperationStatus>[]): void;
  status(of: Partial<ClientStatus>): void;
} {
  const listeners: Record<string, Listener[]> = { bulkOperations$: [], status$: [], failures$: [], quarantine$: [] };
  const subject = (name: string): object => ({ subscribe: (listener: Listener) => listeners[name]?.push(listener) });
  const tab = {
    alive: true,
    client: {
      bulkOperations$: subject('bulkOperations$'),
      status$: subject('status$'),
      failures$: subject('failures$'),
      quarantine$: subject('quarantine$'),
    },
  };
  const tell = (name: string, value: unknown): void => listeners[name]?.forEach((listener) => listener(value));
  const idle = { state: 'idle', attempts: 0 };
  return {
    tab: tab as unknown as Tab,
    kill: () => (tab.alive = false),
    bulk: (...all) =>
      tell(
        'bulkOperations$',
        all.map((one) => ({ key: 'b1', state: 'queued', cursor: 0, attempts: 0, ...one })),
      ),
    status: (of) =>
      tell('status$', {
        state: 'idle',
        pending: 0,
        unreported: 0,
        publishers: {},
        unpublished: 0,
        push: idle,
        pull: idle,
        results: idle,
        ...of,
      }),
  };
}

describe('what was observed', () => {
  const clock = { now: 0, elapsed: () => clock.now, wall: () => 1000 + clock.now };
  let sent = 0;
  const observe = (...tabs: Tab[]): Observation => observeOf(false, ...tabs);
  const observeOf = (countsPush: boolean, ...tabs: Tab[]): Observation => {
    clock.now = 0;
    sent = 0;
    const observation = new Observation(
      clock,
      () => ['k1', 'k2'],
      countsPush,
      () => undefined,
      () => sent,
    );
    for (const tab of tabs) observation.watch(tab);
    return observation;
  };

  it('counts no try of the push that had nothing of the case to send', () => {
    const { tab, status } = shown();
    const seen = observe(tab);
    const push = (attempts: number, failedAttempts = 0): void =>
      status({ push: { state: 'running', attempts, failedAttempts } as ClientStatus['push'] });
    push(1);
    clock.now = 5;
    push(2);
    sent = 1;
    clock.now = 9;
    push(3, 1);
    sent = 0;
    expect(seen.pushAttempts).toEqual([5, 9]);
    // After a restart the count begins at zero and is then read from the store.
    push(0);
    push(3, 1);
    push(4, 1);
    expect(seen.pushAttempts).toEqual([5, 9, 9]);
  });

  it('keeps states in their order and the start of each attempt', () => {
    const { tab, bulk } = shown();
    const seen = observe(tab);
    bulk({ state: 'running', attempts: 1 });
    bulk({ state: 'waiting-retry', attempts: 1 });
    clock.now = 60_000;
    bulk({ state: 'running', attempts: 3 });
    bulk({ state: 'done', attempts: 3, cursor: 2 });
    expect(seen.states).toEqual(['running', 'waiting-retry', 'running', 'done']);
    expect(seen.attempts).toEqual([0, 60_000, 60_000]);
    expect([seen.state, seen.endedAt, seen.doneKeys]).toEqual(['done', 60_000, ['k1', 'k2']]);
  });

  it('notes a next attempt that is shown when its time is over, not one that passes by', () => {
    const { tab, bulk } = shown();
    const seen = observe(tab);
    bulk({ state: 'waiting-retry', nextAttemptAt: 1000 });
    clock.now = 1;
    bulk({ state: 'waiting-retry', nextAttemptAt: 1000 });
    expect(seen.pastAttempts).toEqual([]);
    bulk({ state: 'waiting-retry', nextAttemptAt: 999 });
    expect(seen.pastAttempts).toEqual(['b1 at 1 ms']);
  });

  it('is settled only when nothing is left to do or to send', () => {
    const { tab, status } = shown();
    const seen = observe(tab);
    expect(seen.isSettled).toBe(false);
    status({});
    expect(seen.isSettled).toBe(true);
    for (const busy of [
      { pending: 1 },
      { unreported: 1 },
      { unpublished: 1 },
      { push: { state: 'waiting-retry', attempts: 0 } },
    ]) {
      status(busy as Partial<ClientStatus>);
      expect(seen.isSettled).toBe(false);
    }
  });

  it('is settled only when it has looked at the server after it has sent something', () => {
    const { tab, status } = shown();
    const seen = observe(tab);
    const pull = (attempts: number): void => status({ pull: { state: 'idle', attempts } as ClientStatus['pull'] });
    pull(1);
    expect(seen.isSettled).toBe(true);
    sent = 1;
    pull(1);
    expect(seen.isSettled).toBe(false);
    pull(2);
    expect(seen.isSettled).toBe(true);
    sent = 2;
    status({ pull: { state: 'off', attempts: 0 } as ClientStatus['pull'] });
    expect(seen.isSettled).toBe(true);
  });

  it('shows what the push does where a case is about it, and the end when the push is at its end', () => {
    const { tab, bulk, status } = shown();
    const seen = observeOf(true, tab);
    const push = (state: string): void => status({ push: { state, attempts: 1 } as ClientStatus['push'] });
    bulk({ state: 'running' });
    push('running');
    bulk({ state: 'done', cursor: 2 });
    push('waiting-retry');
    bulk({ state: 'done', cursor: 2 });
    expect(seen.statesNow).toEqual(['done', 'waiting-retry']);
    clock.now = 5;
    push('running');
    bulk({ state: 'done', cursor: 2 });
    push('idle');
    expect(seen.states).toEqual(['running', 'waiting-retry', 'running', 'done']);
    expect([seen.statesNow, seen.endedAt]).toEqual([['done'], 0]);
  });

  it('listens to the first tab that lives', () => {
    const [first, second] = [shown(), shown()];
    const seen = observe(first.tab, second.tab);
    second.bulk({ state: 'running' });
    expect(seen.states).toEqual([]);
    first.kill();
    second.bulk({ state: 'done' });
    first.bulk({ state: 'failed' });
    expect(seen.states).toEqual(['done']);
  });
});
