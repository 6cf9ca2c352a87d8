import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkIndex } from './check-index.js';
import { caseIndex } from './index-keys.js';
import { unstored, type StoredIndex } from './index-store.js';
import { readCases } from './read.js';
import { runCase } from './run.js';
import { startCaseServer, type CaseServer } from './server.js';
import { takeSteps } from './steps.js';
import { World } from './world.js';

const abort = { status: 500, name: 'indexed_db_went_bad', reason: 'AbortError' };
const base = {
  id: 'T02',
  title: 'an index',
  kind: 'test',
  set: 'HAND',
  source: [],
  target: 'local',
  config: { index: { name: 'by-parent', batch_size: 2 } },
  seed_docs: [{ $repeat: 5, doc: { _id: 'i{n}', parent: { _id: 'h1' } } }],
  server_docs: [],
  operations: [],
  steps: [{ do: 'build-index' }, { do: 'query-index' }, { do: 'advance', s: 60 }],
  faults: [{ at: 'storage', when: { db: 'index', call: 'bulkDocs', nth: 2 }, do: { commit: false, reject: abort } }],
};
const ids = ['i1', 'i2', 'i3', 'i4', 'i5'];
const truth = {
  state: 'ready',
  rows_for: { h1: ids, h2: [] },
  row_ids: ids,
  checkpoint_never_past_unstored: true,
  incomplete_query_flagged: true,
};

let server: CaseServer;
beforeAll(async () => {
  server = await startCaseServer();
});
afterAll(() => server.close());

function caseWith(changes: object) {
  const [only] = readCases(JSON.stringify({ ...base, expect: { index: truth }, ...changes }), 'T02.json');
  if (only === undefined) throw new Error('no case');
  return only;
}
const failures = async (changes: object): Promise<readonly string[]> =>
  (await runCase(caseWith(changes), server)).failures;

describe('a case with an index', () => {
  it('passes when all it expects is so', async () => {
    expect(await failures({})).toEqual([]);
  });

  it.each([
    [{ state: 'parked' }],
    [{ rows_for: { h1: ids.slice(1) } }],
    [{ rows_for: { h2: ['i1'] } }],
    [{ row_ids: [] }],
    [{ row_ids: [...ids, 'i6'] }],
  ])('goes red when it expects %j', async (lie) => {
    const [field = ''] = Object.keys(lie);
    expect(await failures({ expect: { index: lie } })).toEqual([expect.stringContaining(`index ${field}`)]);
  });

  it.each([
    [{ index_state: 'parked' }, 'index_state: expected parked, but it is ready'],
    [{ parked_id: 'i1' }, 'parked_id: expected i1, but it is not there'],
  ])('goes red at a step check that is not so: %j', async (check, line) => {
    const steps = [...base.steps, { do: 'check', ...check }];
    expect(await failures({ steps })).toEqual([`step 4, check: ${line}`]);
  });

  it('sees the index while it is built, and the document at which it is parked', async () => {
    const stopped = { config: { index: { name: 'by-parent-throws-on-i3' } }, faults: [], expect: {} };
    const steps = [{ do: 'build-index' }, { do: 'check', index_state: 'parked', parked_id: 'i3' }];
    expect(await failures({ ...stopped, steps })).toEqual([]);
    const halfway = [{ do: 'build-index' }, { do: 'check', index_state: 'building' }];
    expect(await failures({ steps: halfway, expect: {} })).toEqual([]);
  });

  it.each([
    { call: 'write', times: 2 },
    { call: 'bulkDocs', nth: 3 },
    { call: 'read', nth: 2 },
    { call: 'write', from_nth: 2, until: 'query-index' },
  ])('meets the faults of its store: %j', async (when) => {
    const faults = [{ at: 'storage', when: { db: 'index', ...when }, do: { reject: { name: 'DataError' } } }];
    expect(await failures({ faults, expect: { index: { state: 'parked' } } })).toEqual([]);
  });

  it('does not meet those of other databases, and fails late or with its work done as the case says', async () => {
    const wrong = { name: 'DataError' };
    const elsewhere = { at: 'storage', when: { db: 'docs', call: 'write' }, do: { reject: wrong } };
    expect(await failures({ faults: [elsewhere] })).toEqual([]);
    const fault = (nth: number, todo: object) => [
      { at: 'storage', when: { db: 'index', call: 'write', nth }, do: todo },
    ];
    const parked = (rows: readonly string[]) => ({ index: { state: 'parked', row_ids: rows } });
    const stored = fault(1, { commit: true, reject: wrong });
    expect(await failures({ faults: stored, expect: parked(['i1', 'i2']) })).toEqual([]);
    expect(await failures({ faults: fault(1, { reject: wrong }), expect: parked([]) })).toEqual([]);
    const third = [{ at: 'storage', when: { db: 'index', batch: 2 }, do: { reject: wrong } }];
    expect(await failures({ faults: third, expect: parked(['i1', 'i2']) })).toEqual([]);
    const hung = fault(1, { hang: true, carry_out_at_s: 30 });
    const steps = [{ do: 'build-index' }, { do: 'advance', s: 20 }];
    expect(await failures({ faults: hung, steps, expect: { index: { row_ids: [] } } })).toEqual([]);
    const later = [...steps, { do: 'advance', s: 20 }];
    expect(await failures({ faults: hung, steps: later, expect: { index: { row_ids: ['i1', 'i2'] } } })).toEqual([]);
  });

  it('ends the process when the index parks', async () => {
    const faults = [
      { at: 'storage', when: { db: 'index', call: 'write', nth: 3 }, do: { reject: { name: 'DataError' } } },
      { at: 'process', when: { point: 'index-parked', nth: 1 }, do: { kill: true, restart: true } },
    ];
    expect(await failures({ faults })).toEqual([]);
    const [fault] = faults;
    expect(await failures({ faults: [fault] })).toContainEqual(expect.stringContaining('index state'));
  });

  it('cannot run steps of an index that it has not', async () => {
    const report = await runCase(caseWith({ config: {} }), server);
    expect(report.impossible).toBe('step build-index without config.index');
  });
});

describe('an index that lies', () => {
  let world: World;
  beforeEach(async () => {
    world = new World(caseWith({}), server, `test-${String(process.pid)}-${String(Math.random()).slice(2)}`);
    await world.open();
    await takeSteps(world);
  });
  afterEach(async () => {
    await world.close();
    await world.drop();
  });

  /** Takes away a row behind the SDK's back. */
  async function lose(id: string): Promise<void> {
    const [one] = await world.index.indexedDB.databases();
    const request = world.index.indexedDB.open(one?.name ?? '');
    await new Promise((resolve) => (request.onsuccess = resolve));
    const transaction = request.result.transaction('rows', 'readwrite');
    transaction.objectStore('rows').delete(id);
    await new Promise((resolve) => (transaction.oncomplete = resolve));
    request.result.close();
  }

  it('was looked into after each write, and asked', () => {
    expect(world.index.looks).toBeGreaterThanOrEqual(3);
    expect(world.index.queries).toBe(1);
  });

  it('is found out when its resume point is past a row that is not stored, and when it answers without that row', async () => {
    expect(await checkIndex(truth, world)).toEqual([]);
    await lose('i1');
    const wrong = await checkIndex({ ...truth, rows_for: {}, row_ids: ids.slice(1) }, world);
    expect(wrong).toEqual([
      expect.stringMatching(/^index checkpoint_never_past_unstored: the point is \d+, but i1 \(1\) is not stored/),
      expect.stringContaining('index incomplete_query_flagged: answered with ["i2","h1"]'),
    ]);
  });
});

describe('unstored', () => {
  const definition = caseIndex({ name: 'by-parent-throws-on-bad' });
  const at = (point: number | undefined, rows: [string, unknown[]][] = [], skipped: string[] = []): StoredIndex => ({
    rows: new Map(rows),
    skipped: new Set(skipped),
    point,
  });
  const changes = [
    { id: 'i1', seq: 1, doc: { _id: 'i1', parent: { _id: 'h1' } } },
    { id: 'i2', seq: 2, doc: undefined },
    { id: 'bad', seq: 3, doc: { _id: 'bad' } },
  ];

  it.each([
    ['no row', at(1), 1],
    ['a row with another key', at(1, [['i1', ['h2']]]), 1],
    ['a row of what was deleted', at(2, [['i1', ['h1']], ['i2', ['h1']]]), 1], // prettier-ignore
    ['nothing of what cannot be indexed', at(3, [['i1', ['h1']]]), 1],
    ['all', at(2, [['i1', ['h1']]]), 0],
    ['all, and the last left out', at(3, [['i1', ['h1']]], ['bad']), 0],
    ['nothing yet', at(undefined), 0],
    ['nothing, and its point is before all', at(0), 0],
  ])('of a store with %s', (_what, stored, lines) => {
    expect(unstored(stored, changes, definition)).toHaveLength(lines);
  });
});
