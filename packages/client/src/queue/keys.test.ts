import { describe, expect, it } from 'vitest';
import { derivedFrom, eventIdOf, keyOf, plannedKeys, storedKey } from './keys.js';

const header = { key: 'bulk' };

describe('the key of a mutation', () => {
  it('O1 is the one that the caller gave, else the one of the bulk operation with the index', () => {
    expect(keyOf(header, { k: 'mine' }, 3)).toEqual({ key: 'mine', origin: 'o' });
    expect(keyOf(header, {}, 3)).toEqual({ key: 'bulk:3', origin: 'b' });
  });

  it('O1 gives two mutations two events, however their keys are written', () => {
    const given = [
      keyOf(header, { k: 'bulk:3' }, 0),
      keyOf(header, {}, 3),
      derivedFrom(keyOf(header, { k: 'bulk:3' }, 0)),
      derivedFrom(keyOf(header, {}, 3)),
      keyOf(header, { k: 'bulk:3~1' }, 0),
      keyOf({ key: 'bulk', derived: true }, {}, 3),
    ];
    expect(new Set(given.map((key) => eventIdOf('store', key))).size).toBe(given.length);
  });

  it('O1 keeps the keys that two runs of a plan give apart, and those of its retry', () => {
    const given = [{ k: 'a', c: null }, { c: null }];
    const keys = [header, { key: 'other' }, { key: 'bulk', derived: true }].flatMap((one) =>
      plannedKeys(one, given).map((operation, index) => eventIdOf('store', keyOf(one, operation, index))),
    );
    expect(new Set([...keys, eventIdOf('store', keyOf(header, { k: 'bulk:a' }, 0))]).size).toBe(7);
  });

  it('O1 R19 gives two mutations two events, also where a given key looks like a derived one', () => {
    const retriedOf = (key: ReturnType<typeof keyOf>): ReturnType<typeof keyOf>[] => {
      const once = derivedFrom(key);
      return [key, once, derivedFrom(once)];
    };
    const planned = (key: string, k: string, derived: boolean): ReturnType<typeof keyOf> => {
      const one = { key, ...(derived ? { derived } : {}) };
      return keyOf(one, plannedKeys(one, [{ k, c: null }])[0], 0);
    };
    const given = [
      ...['mine', 'mine~1', 'mine~2', 'mine~1~1'].flatMap((k) => retriedOf(keyOf(header, { k }, 0))),
      ...['bulk', 'bulk:0', 'bulk~1'].flatMap((key) => retriedOf(keyOf({ key }, {}, 0))),
      ...retriedOf(keyOf({ key: 'bulk~1', derived: true }, {}, 0)),
      ...[false, true].flatMap((derived) => [
        ...retriedOf(planned('a:b', 'c', derived)),
        ...retriedOf(planned('a', 'b:c', derived)),
        ...retriedOf(planned('a', 'b%3Ac', derived)),
        ...retriedOf(planned('a', 'c', derived)),
        ...retriedOf(planned('a', 'c~1', derived)),
      ]),
    ];
    expect(new Set(given.map((key) => eventIdOf('store', key))).size).toBe(given.length);
  });

  it('O1 collides on no other device', () => {
    const key = keyOf(header, { k: 'mine' }, 0);
    expect(eventIdOf('one', key)).not.toBe(eventIdOf('other', key));
  });

  it('R19 is derived anew with each retry, and keeps where it came from', () => {
    const first = derivedFrom({ key: 'mine', origin: 'o' });
    expect(first).toEqual({ key: 'mine~1', origin: 'o~' });
    expect(derivedFrom(first)).toEqual({ key: 'mine~2', origin: 'o~' });
    expect(keyOf(header, storedKey(first), 0)).toEqual(first);
  });
});
