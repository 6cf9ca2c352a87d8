import { describe, expect, it } from 'vitest';
import { createClient } from './client.js';
import type { ClientOptions } from './model/client.js';
import { memoryPouch } from './store/memory-pouch.fixture.js';
import { handAction, setColour } from './test-bed.fixture.js';

const opening = (more: object): (() => unknown) => {
  const options = { name: 'clinic', PouchDB: memoryPouch(), actions: [], autoStart: false, ...more } as ClientOptions;
  return () => createClient(options);
};

describe('what an app hands in', () => {
  it.each([
    [{ ...setColour, classifyRows: () => undefined }, 'classifyRows'],
    [{ ...setColour, kind: undefined }, 'defineDocumentAction'],
    [{ ...setColour, missing: 'ignore' }, 'missing'],
    [{ ...setColour, guard: 'x' }, 'guard'],
    [{ ...handAction('x').action, classifyRow: () => undefined }, 'classifyRow'],
  ])('S9 a definition with something wrong is refused, and says what: %#', (action, what) => {
    expect(opening({ actions: [action] })).toThrow(what);
  });

  it.each(['create', 'update', 'delete'])(
    'S9 an action of the app cannot take the name of the built-in `%s`',
    (name) => {
      expect(opening({ actions: [{ ...setColour, name }] })).toThrow(`the action "${name}" is defined twice`);
    },
  );

  const place = { name: 'place', publish: () => Promise.resolve({ accepted: [] }) };
  it.each([
    [[null], '`publishers.0` must be an object { name, publish }'],
    [[place, {}], '`publishers.1.name` must be 1 to 64 of A-Z a-z 0-9 _ . -'],
    [[{ ...place, name: 'a b' }], '`publishers.0.name` must be 1 to 64 of A-Z a-z 0-9 _ . -'],
    [[place, place], 'the publisher "place" is listed twice (`publishers.1`): give one of them another `name`'],
    [[{ name: 'idle' }], 'the publisher "idle" has no function `publish` (`publishers.0.publish`)'],
  ])('S9 publishers that cannot be meant are refused, and it is said which: %#', (publishers, words) => {
    expect(opening({ publishers })).toThrow(`createClient: ${words}`);
  });

  it('S9 an address that names no database is refused', () => {
    expect(opening({ server: 'http://127.0.0.1:5984/' })).toThrow('names no database');
    expect(opening({ server: 'http://127.0.0.1:5984/records', results: 'http://127.0.0.1:5984' })).toThrow('`results`');
    expect(opening({ server: 'http://127.0.0.1:5984/records?x=1' })).toThrow('without `?` or `#`');
    expect(opening({ server: 'http://ann:pw@127.0.0.1:5984/records' })).toThrow('use `auth`');
  });
});
