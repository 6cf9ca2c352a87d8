import { describe, expect, it } from 'vitest';
import { FaultBook, merged } from './fault-book.js';
import type { Fault } from './schema.js';

function book(when: object): {
  occurs(): unknown;
  at(seconds: number): void;
  reach(step: string): void;
  armed(now: boolean): void;
} {
  const fault: Fault = { at: 'request', when, do: { status: 503 } };
  let elapsed = 0;
  const faults = new FaultBook([fault], true, () => elapsed);
  return {
    occurs: () => faults.occurs(fault),
    at: (seconds) => (elapsed = seconds),
    reach: (step) => faults.reach(step),
    armed: (now) => (faults.armed = now),
  };
}

describe('a fault happens', () => {
  it.each([
    ['always', {}, ['now', 'now', 'now', 'now']],
    ['only the nth time', { nth: 2 }, [undefined, 'now', 'later', 'later']],
    ['from the nth time on', { from_nth: 3 }, [undefined, undefined, 'now', 'now']],
    ['the first N times', { times: 2 }, ['now', 'now', 'later', 'later']],
  ])('%s', (_when, when, expected) => {
    const { occurs } = book(when);
    expect(expected.map(() => occurs())).toEqual(expected);
  });

  it('until a step, until a second, until some seconds after waking', () => {
    const untilLogin = book({ until: 'login' });
    expect(untilLogin.occurs()).toBe('now');
    untilLogin.reach('login');
    expect(untilLogin.occurs()).toBeUndefined();

    const before = book({ before_s: 10 });
    before.at(9);
    expect(before.occurs()).toBe('now');
    before.at(10);
    expect(before.occurs()).toBeUndefined();

    const afterWake = book({ until: 'wake+20' });
    afterWake.at(100);
    afterWake.reach('sleep');
    afterWake.at(119);
    expect(afterWake.occurs()).toBe('now');
    afterWake.at(120);
    expect(afterWake.occurs()).toBeUndefined();
  });

  it('not before it is armed, and what came before does not count', () => {
    const waiting = book({ nth: 1 });
    waiting.armed(false);
    expect(waiting.occurs()).toBeUndefined();
    waiting.armed(true);
    expect(waiting.occurs()).toBe('now');
  });
});

describe('an edit of another actor', () => {
  it('merges fields and counts from 1', () => {
    const once = merged({ _id: 'p1', name: 'a' }, { seen: { $count: true }, name: 'b' });
    expect(once).toEqual({ _id: 'p1', name: 'b', seen: 1 });
    expect(merged(once, { seen: { $count: true } })).toEqual({ _id: 'p1', name: 'b', seen: 2 });
  });
});
