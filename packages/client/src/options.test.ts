import { describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
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

  const indexedDB = {} as IDBFactory;
  const byType = { name: 'by-type', version: 1, keys: () => undefined };
  it.each([
    ['x', '`indexes` must be a list'],
    [[null], '`indexes.0` must be an object { name, version, keys }'],
    [[byType, { ...byType, name: 'by type' }], '`indexes.1.name` must be 1 to 64 of A-Z a-z 0-9 _ -'],
    [[{ ...byType, name: 'x'.repeat(65) }], '`indexes.0.name` must be 1 to 64 of A-Z a-z 0-9 _ -'],
    [[{ ...byType, version: 0 }], '`version` of the index "by-type" must be a whole number, 1 or more'],
    [[{ ...byType, version: '1' }], '`version` of the index "by-type" must be a whole number, 1 or more'],
    [[{ ...byType, keys: 'type' }], 'the index "by-type" has no function `keys`'],
    [[{ ...byType, onError: 'ignore' }], '`onError` of the index "by-type" must be "park" or "skip"'],
    [[{ ...byType, batchSize: 101 }], '`batchSize` of the index "by-type" must be a whole number from 1 to 100'],
    [[{ ...byType, key: () => 1 }], 'the index "by-type" has the unknown field `key`'],
    [[byType, byType], 'the index "by-type" is listed twice (`indexes.1`): give one of them another `name`'],
  ])('S9 indexes that cannot be meant are refused, and it is said which: %#', (indexes, words) => {
    expect(opening({ indexes, environment: { indexedDB } })).toThrow(`createClient: ${words}`);
  });

  it('S9 indexes without an IndexedDB are refused, and it is said what to hand in', () => {
    const environment = { indexedDB: undefined };
    const words = 'createClient: `indexes` need IndexedDB, which is not there: hand one in as `environment.indexedDB`.';
    expect(opening({ indexes: [byType], environment })).toThrow(words);
    expect(opening({ indexes: [], environment })).not.toThrow();
  });

  const plan = { name: 'find', request: z.strictObject({}), plan: () => Promise.resolve([]) };
  it.each([
    [
      { ...plan, indexes: ['by-type', 'by-age'] },
      'the plan "find" names the index "by-age", which is not in `indexes`',
    ],
    [
      { ...plan, index: ['by-type'] },
      'the plan "find" has the unknown field `index` (it may have name, request, plan, indexes, subjects)',
    ],
    [{ ...plan, indexes: [5] }, 'the plan "find" names the index "5", which is not in `indexes`'],
    [{ ...plan, indexes: 'by-type' }, '`indexes` of the plan "find" must be a list of names'],
  ])('S9 a plan that asks an index which is not there is refused, and it is said which: %#', (wrong, words) => {
    const given = { indexes: [byType], environment: { indexedDB } };
    expect(opening({ plans: [wrong], ...given })).toThrow(`createClient: ${words}`);
    expect(opening({ plans: [{ ...plan, indexes: ['by-type'] }], ...given })).not.toThrow();
  });

  it.each([
    [
      { replication: 'auto', server: 'http://couch.test/records' },
      '`replication` must be "managed", "external" or "off"',
    ],
    [{ replication: 'external' }, "`replication: 'external'` needs a `server`"],
    [{ replication: 'managed' }, "`replication: 'managed'` needs a `server`"],
  ])('S9 a replication that cannot be meant is refused, and it is said why: %#', (given, words) => {
    expect(opening(given)).toThrow(`createClient: ${words}`);
    expect(opening({ ...given, replication: 'off' })).not.toThrow();
  });

  const one = '`pull` must be { selector } or { docIds }; a function cannot be a filter';
  it.each([
    [() => true, one],
    [{ filter: () => true }, one],
    [{ selector: {}, docIds: [] }, one],
    [{ selector: undefined }, one],
    [{ selector: [] }, '`pull.selector` must be a CouchDB selector: an object of JSON'],
    [{ selector: { type: () => true } }, '`pull.selector` must be a CouchDB selector: an object of JSON'],
    [{ selector: { at: new Date(0) } }, '`pull.selector` must be a CouchDB selector: an object of JSON'],
    [{ docIds: 'a' }, '`pull.docIds` must be a list of document ids'],
    [{ docIds: ['a', ''] }, '`pull.docIds` must hold ids of documents: number 1 is none'],
    [{ docIds: ['_design/x'] }, '`pull.docIds` must hold ids of documents: number 0 is none'],
  ])('S2 S9 what cannot say what to pull is refused, and it is said why: %#', (pull, words) => {
    expect(opening({ pull, server: 'http://couch.test/records' })).toThrow(`createClient: ${words}`);
  });

  it('S9 `pull` is refused where nothing is pulled, and a time of inactivity that is none', () => {
    const given = { server: 'http://couch.test/records', pull: { docIds: [] } };
    expect(opening(given)).not.toThrow();
    for (const replication of ['external', 'off', false]) {
      expect(opening({ ...given, replication })).toThrow('`pull` is only for `replication: "managed"`');
    }
    expect(opening({ ...given, outOfSight: ['a'] })).toThrow('`outOfSight` must be a function');
    expect(opening({ inactivityS: 0 })).toThrow('`inactivityS` must be 1 or more');
  });

  it.each([
    [{ results: { url: 'http://127.0.0.1:5984' } }, '`results.url` names no database'],
    [{ results: {} }, '`results.url` must be the whole address of a database'],
    [{ results: { url: 'http://couch.test/r', contents: true } }, '`results` has the unknown field `contents`'],
    [{ results: { url: 'http://couch.test/r', content: 'yes' } }, '`results.content` must be true or false'],
    [{ redact: 'all' }, '`redact` must be a function'],
  ])('S9 results that cannot be meant are refused, and it is said why: %#', (given, words) => {
    expect(opening(given)).toThrow(`createClient: ${words}`);
    expect(opening({ results: { url: 'http://couch.test/r', content: true }, redact: () => undefined })).not.toThrow();
  });

  it('S9 an address that names no database is refused', () => {
    expect(opening({ server: 'http://127.0.0.1:5984/' })).toThrow('names no database');
    expect(opening({ server: 'http://127.0.0.1:5984/records', results: 'http://127.0.0.1:5984' })).toThrow('`results`');
    expect(opening({ server: 'http://127.0.0.1:5984/records?x=1' })).toThrow('without `?` or `#`');
    expect(opening({ server: 'http://ann:pw@127.0.0.1:5984/records' })).toThrow('use `auth`');
  });
});
