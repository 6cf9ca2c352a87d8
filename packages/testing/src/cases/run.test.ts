import { eventDocument } from '@afield/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { takeBaseline, type Baseline } from './baseline.js';
import { checkEvents } from './check-events.js';
import { checkExpectations } from './checks.js';
import { sampleEvent } from '../publisher-laws/sample-events.js';
import { Publications } from './publications.js';
import { readCases, type Case } from './read.js';
import { takeSteps } from './steps.js';
import { World } from './world.js';
import { runCase, type CaseReport } from './run.js';
import { expectation } from './schema.js';
import { startCaseServer, type CaseServer } from './server.js';

const area = { _id: 'a1' };
const household = { _id: 'h1', parent: area };
const photo = { 'photo.png': { content_type: 'image/png', data: 'iVBORw0KGgo=' } };

/** Two persons move, one is deleted; the first write finds the server busy. */
const base = {
  id: 'T01',
  title: 'a case that passes',
  kind: 'test',
  set: 'HAND',
  source: [],
  target: 'server',
  seed_docs: [{ _id: 'p3', type: 'person' }],
  server_docs: [
    { _id: 'p1', type: 'person', _attachments: photo },
    { _id: 'p2', type: 'person', parent: area },
    { _id: 'p3', type: 'person' },
    { _id: 'p4', type: 'person' },
  ],
  operations: [
    { key: 't-1', action: 'set-parent', id: 'p1', from: null, to: household },
    { key: 't-2', action: 'set-parent', id: 'p2', from: household, to: null },
    { key: 't-3', action: 'delete', id: 'p3' },
  ],
  faults: [
    { at: 'request', when: { path: '/_bulk_docs', times: 2 }, do: { status: 503, body: { error: 'x', reason: 'y' } } },
  ],
};

/** All of it is true of that case. */
const truth = {
  state: 'done-with-failures',
  failed_operations: [{ key: 't-2', id: 'p2', code: 'guard_mismatch' }],
  docs: [{ _id: 'p3', type: 'person' }],
  server_docs: [
    { _id: 'p1', parent: household, $present: ['_attachments'], $absent: ['contact'] },
    { _id: 'p1', _attachments: { 'photo.png': { content_type: 'image/png' } } },
    { _id: 'p3', $deleted: true },
  ],
  untouched: ['p2'],
  server_untouched: ['p4'],
  server_deleted: ['p3'],
  revs_added: { p1: 1, p2: 0, 'main:p3': 1 },
  revs_added_max: { p1: 1 },
  row_attempts_max: { p1: 3, p2: 0 },
  attempts: 4,
  attempts_max: 4,
  attempt_offsets_s: [0, 0, 60],
  second_attempt_between_s: [0, 1],
  elapsed_max_s: 60,
  requests_max: { 'POST /_bulk_docs': 4, 'POST /_bulk_docs docs': 4 },
  observed: ['running', 'waiting-retry', 'done-with-failures'],
  last_error_class: 'server',
  events: {
    per_key: { 't-1': [1, 1], 't-2': [0, 0], 't-3': [0, 1] },
    distinct_ids_per_key: 1,
    order: [['t-1', 't-3']],
  },
  applied_once: ['t-1', 't-3'],
  never_done: ['t-2'],
  quarantine: [],
  enqueue_rejected: [],
  same_rev_both_sides: [],
  doc_count_delta: { main: -1, docs: 0 },
  attachments: [{ id: 'p1', name: 'photo.png', data: 'iVBORw0KGgo=' }],
  attachment_uploads: 0,
  prototype_clean: ['seen'],
  next_attempt_never_past: true,
  server_results: {
    ...{ count: 1, state: 'done-with-failures', done: 2, failed: 1, not_done: 0 },
    failed_operations: [{ key: 't-2', id: 'p2', code_in: ['missing', 'guard_mismatch'] }],
  },
  changes_feed_whole: ['p1', 'p3'],
};

/** For each field something that is not true of that case. */
const lies: Readonly<Record<string, readonly unknown[]>> = {
  state: ['done'],
  failed_operations: [
    [],
    [{ key: 't-2', code: 'missing' }],
    [{ key: 't-1', code: 'guard_mismatch' }],
    [{ key: 't-2', code_in: ['missing', 'forbidden'] }],
    [...truth.failed_operations, { key: 't-1' }],
  ],
  docs: [[{ _id: 'p1' }], [{ _id: 'p3', type: 'place' }]],
  server_docs: [
    [{ _id: 'p1', parent: area }],
    [{ _id: 'p1', parent: { ...household, more: 1 } }],
    [{ _id: 'p1', parent: { _id: 'h1' } }],
    [{ _id: 'p1', _attachments: { 'photo.png': { content_type: 'image/gif' } } }],
    [{ _id: 'p1', type: {} }],
    [{ _id: 'p1', $deleted: true }],
    [{ _id: 'p1', $absent: ['parent'] }],
    [{ _id: 'p1', $present: ['contact'] }],
    [{ _id: 'p3' }],
  ],
  server_users: [[{ _id: 'org.couchdb.user:basil' }]],
  untouched: [['p1']],
  server_untouched: [['p3']],
  server_deleted: [[], ['p3', 'p4']],
  revs_added: [{ p1: 0 }, { p1: 2 }, { 'main:p3': 0 }],
  revs_added_max: [{ p1: 0 }],
  row_attempts_max: [{ p1: 2 }],
  attempts: [3, 5],
  attempts_max: [3],
  attempt_offsets_s: [
    [0, 0, 120],
    [0, 0, 60, 60, 60, 60],
  ],
  second_attempt_between_s: [[1, 60]],
  attempts_after_wake_max: [9],
  elapsed_max_s: [59],
  requests_max: [{ 'POST /_bulk_docs': 3 }, { 'POST /_bulk_docs docs': 3 }],
  observed: [['waiting-storage'], ['waiting-retry', 'queued']],
  last_error_class: ['network'],
  events: [
    { per_key: { 't-1': [2, 2] } },
    { per_key: { 't-1': [0, 0] } },
    { per_key: { 't-2': [1, 1] } },
    { per_key: { 't-9': [1, 1] } },
    { distinct_ids_per_key: 0 },
    { distinct_ids_per_key: 2 },
    { order: [['t-3', 't-1']] },
    { order: [['t-1', 't-2']] },
    { order: [['t-2', 't-1']] },
  ],
  applied_once: [['t-2']],
  never_done: [['t-1']],
  quarantine: [['t-1']],
  enqueue_rejected: [['t-1']],
  same_rev_both_sides: [['p1']],
  doc_count_delta: [0, { docs: -1 }],
  attachments: [[{ id: 'p1', name: 'photo.png', data: 'AAAA' }], [{ id: 'p2', name: 'photo.png', data: 'AAAA' }]],
  attachment_uploads: [1],
  prototype_clean: [['toString']],
  server_results: [
    ...[2, 'x', false, ['t-9'], { colour: 1 }, { failed: 0 }, { state: 'done' }, { failed_operations: [] }],
    { failed_operations: [{ key: 't-1' }] },
    { failed_operations: [{ key: 't-2', code: 'missing' }] },
  ],
  changes_feed_whole: [['p9'], 'x', false],
};

let server: CaseServer;
let world: World;
let baseline: Baseline;
beforeAll(async () => {
  server = await startCaseServer();
  world = new World(caseWith({}), server, `test-${String(process.pid)}`);
  await world.open();
  baseline = await takeBaseline(world);
  await takeSteps(world);
});
afterAll(async () => {
  await world.close();
  await world.drop();
  await server.close();
});

function caseWith(changes: object): Case {
  const [only] = readCases(JSON.stringify({ ...base, expect: truth, ...changes }), 'T01.json');
  if (only === undefined) throw new Error('no case');
  return only;
}

function run(changes: object): Promise<CaseReport> {
  return runCase(caseWith(changes), server);
}

describe('a case', () => {
  it('passes when all it expects is so', async () => {
    expect((await run({})).failures).toEqual([]);
  });

  it.each(Object.entries(lies).flatMap(([field, values]) => values.map((value) => [field, value] as const)))(
    'goes red when it expects of %s: %j',
    async (field, value) => {
      const failures = await checkExpectations(caseWith({ expect: { [field]: value } }).expect, { world, baseline });
      expect(failures.filter((line) => line.startsWith(field))).not.toEqual([]);
    },
  );

  it('has no field that could not go red', () => {
    const all = Object.keys(expectation.shape);
    // The tolerance only widens another field; the past attempts are tested with the observation, the index with its watch.
    const elsewhere = ['tolerance', 'next_attempt_never_past', 'index'];
    expect(all.filter((field) => !(field in lies)).sort()).toEqual(elsewhere.sort());
  });

  it('goes red when an enqueue was refused and the case does not say so', async () => {
    const operations = [{ key: { $text: 300 }, action: 'delete', id: 'p1' }];
    expect((await run({ operations, expect: {} })).failures).toEqual([
      expect.stringContaining('enqueue_rejected: expected [], but it is ["xxx'),
    ]);
  });

  it.each([
    [{ state: 'running' }, 'state'],
    [{ state_in: ['running', 'idle'] }, 'state_in'],
    [{ cause: 'QuotaExceededError' }, 'cause'],
    [{ done_keys: ['t-1'] }, 'done_keys'],
    [{ requests_max: { 'POST /_bulk_docs': 1 } }, 'requests_max'],
  ])('goes red at a step check that is not so: %j', async (check, field) => {
    const steps = [{ do: 'enqueue-all' }, { do: 'start' }, { do: 'check', ...check }, { do: 'settle' }];
    const { failures } = await run({ steps, expect: {} });
    expect(failures.map((line) => line.split(': ').slice(0, 2))).toEqual([['step 3, check', field]]);
  });

  it('sees at a check what the push waits for, where the case is about the push', async () => {
    const faults = [{ at: 'request', when: { path: '/_bulk_docs' }, do: { status: 503, text: '' } }];
    const check = { do: 'check', state: 'waiting-retry', state_in: ['waiting-retry', 'running'] };
    const steps = [{ do: 'enqueue-all' }, { do: 'start' }, check, { do: 'check', state: 'done-with-failures' }];
    const { failures } = await run({ target: 'local', seed_docs: [], steps, faults, expect: {} });
    expect(failures).toEqual([]);
  });

  it('sees what is not as it should be in the database of events', async () => {
    const publications = new Publications();
    const there = await world.databases.events.liveIds();
    expect(there).toHaveLength(2);
    const odd = { _id: 'e9', v: 1, name: 'documents.updated.person' };
    publications.note([{ ...eventDocument(sampleEvent(0)) }, odd], []);
    expect(publications.strange).toEqual(['events: e9 is no event (damaged)']);
    const { observation, queued, databases } = world;
    const wrong = await checkEvents({}, { observation, queued, databases, publications });
    expect(wrong).toEqual([
      `events: the key ${sampleEvent(0).key} is of no operation`,
      `events: ${sampleEvent(0).id} was published, but is not there`,
      ...there.map((id) => `events: ${id} is there, but was never published`),
    ]);
  });

  it('misses an event of what is done', async () => {
    const { observation, queued, databases } = world;
    const nothing = { observation, queued, databases, publications: new Publications() };
    expect((await checkEvents({ distinct_ids_per_key: 1 }, nothing)).slice(0, 2)).toEqual(
      ['t-1', 't-3'].map((key) => `events distinct_ids_per_key ${key}: expected 1, but there are 0`),
    );
  });

  it.each([
    ['after-publish', { 't-1': [2, 2], 't-3': [1, 2] }],
    ['after-doc-write', { 't-1': [1, 1], 't-3': [1, 1] }],
  ])('ends the process %s', async (point, perKey) => {
    const fault = { at: 'process', when: { point, key: 't-1', nth: 1 }, do: { kill: true, restart: true } };
    const expected = { state: 'done-with-failures', events: { per_key: perKey, distinct_ids_per_key: 1 } };
    expect((await run({ faults: [fault], expect: expected })).failures).toEqual([]);
  });

  it('does not end a process for ever at a moment that comes again with each start', async () => {
    const fault = { at: 'process', when: { point: 'after-publish' }, do: { kill: true, restart: true } };
    const expected = { state: 'done-with-failures', events: { distinct_ids_per_key: 1 } };
    expect((await run({ faults: [fault], expect: expected })).failures).toEqual([]);
  });

  it('queues in the order in which a step names keys', async () => {
    const operations = [
      { key: 'a', action: 'test-merge', id: 'p4', set: { seen: 1 } },
      { key: 'b', action: 'test-merge', id: 'p4', set: { seen: 2 } },
    ];
    const steps = [{ do: 'enqueue', keys: ['b', 'a'] }, { do: 'start' }, { do: 'settle' }];
    const expected = { server_docs: [{ _id: 'p4', seen: 1 }], events: { order: [['b', 'a']] } };
    expect((await run({ operations, faults: [], steps, expect: expected })).failures).toEqual([]);
  });

  it('lets each fault of the clock happen at its own time', async () => {
    // The sleep comes after the third attempt, whose retry the next timer after the waking finds due.
    const faults = [
      { at: 'request', when: { path: '/_bulk_docs', times: 3 }, do: { status: 503 } },
      { at: 'clock', when: { after_attempt: 3 }, do: { freeze_timers_s: 3600 } },
      { at: 'clock', when: { after_attempt: 2 }, do: { wall_jump_s: 31_536_000 } },
    ];
    const steps = [{ do: 'enqueue-all' }, { do: 'start' }, { do: 'advance', s: 1 }, { do: 'settle' }];
    const expected = { attempts: 5, attempt_offsets_s: [0, 0, 60, 3720], attempts_after_wake_max: 2 };
    expect((await run({ faults, steps, expect: expected })).failures).toEqual([]);
  });

  it('lets two faults of the clock happen at the two steps that stand for them', async () => {
    const faults = [
      { at: 'request', when: { path: '/_bulk_docs', until: 'sleep' }, do: { status: 503 } },
      { at: 'clock', do: { freeze_timers_s: 7200 } },
      { at: 'clock', do: { wall_jump_s: -86_400 } },
    ];
    const steps = [
      ...[{ do: 'enqueue-all' }, { do: 'start' }, { do: 'advance', s: 70 }, { do: 'clock-jump' }],
      ...[{ do: 'advance', s: 30 }, { do: 'sleep' }, { do: 'advance', s: 5 }, { do: 'settle' }],
    ];
    const expected = { attempt_offsets_s: [0, 0, 60, 7380], attempts_after_wake_max: 2 };
    expect((await run({ faults, steps, expect: expected })).failures).toEqual([]);
  });

  it.each([
    ['as such or as a list of keys', [true, 1, ['t-1', 't-2']]],
    ['of the feed as such', [true]],
  ])('knows results and feeds %s', async (_how, values) => {
    for (const value of values) {
      const expected = Array.isArray(value)
        ? { server_results: value }
        : { server_results: value, changes_feed_whole: true };
      expect(await checkExpectations(caseWith({ expect: expected }).expect, { world, baseline })).toEqual([]);
    }
  });

  it.each([
    ['at its step', 'after-batch', [{ do: 'settle' }, { do: 'server-rollback' }, { do: 'settle' }]],
    [
      'when both sides had the same',
      'after-first-sync',
      [{ do: 'settle' }, { do: 'advance', s: 60 }, { do: 'settle' }],
    ],
  ])('sets the server back %s, once', async (_when, point, more) => {
    const faults = [{ at: 'storage', when: { point }, do: { server_rollback: true } }];
    const steps = [{ do: 'enqueue-all' }, { do: 'start' }, ...more];
    const operations = [{ key: 't-1', action: 'set-parent', id: 'p1', from: null, to: household }];
    const expected = {
      ...{ state: 'done', docs: [{ _id: 'p1', parent: household }], server_docs: [{ _id: 'p1', parent: household }] },
      ...{ revs_added: { p1: 1, 'main:p1': 1 }, same_rev_both_sides: ['p1', 'p2'] },
      attachments: [{ id: 'p1', name: 'photo.png', data: 'iVBORw0KGgo=' }],
    };
    const local = { target: 'local', seed_docs: [], operations };
    // It was sent twice, because the server had lost it; before that once.
    const twice = { ...expected, row_attempts_max: { p1: 2 } };
    const problems = (await run({ ...local, steps, faults, expect: twice })).failures;
    expect(problems).toEqual([]);
    const once = { ...expected, requests_max: { 'POST /_bulk_docs docs': 1 } };
    expect((await run({ ...local, steps, faults, expect: once })).failures).toEqual([
      'requests_max: at most 1 of POST /_bulk_docs docs, but there were 2',
    ]);
  });

  it('settles only when a conflict that the push has made is healed', async () => {
    const edit = { before: { _id: 'p1', $edit: { name: 'Reed' } } };
    const faults = [{ at: 'row', when: { ids: ['p1'], nth: 1 }, do: edit }];
    const operations = [{ key: 't-1', action: 'set-parent', id: 'p1', from: null, to: household }];
    const expected = {
      server_docs: [{ _id: 'p1', parent: household }],
      same_rev_both_sides: ['p1'],
    };
    expect((await run({ target: 'local', seed_docs: [], operations, faults, expect: expected })).failures).toEqual([]);
  });

  it('does not start a tab that was killed', async () => {
    const faults = [{ at: 'process', when: { point: 'after-batch', nth: 1 }, do: { kill: true, restart: false } }];
    const steps = [{ do: 'enqueue-all' }, { do: 'start' }, { do: 'start' }, { do: 'advance', s: 60 }];
    const operations = [
      { key: 't-1', action: 'delete', id: 'p1' },
      { key: 't-2', action: 'test-merge', id: 'p2', set: { seen: 1 } },
    ];
    const expected = { never_done: ['t-2'], server_deleted: ['p1'], row_attempts_max: { p1: 1, p2: 0 } };
    expect((await run({ operations, faults, steps, expect: expected })).failures).toEqual([]);
  });

  it('names what it cannot run', async () => {
    expect((await run({ steps: [{ do: 'wipe' }] })).impossible).toBe('step wipe');
  });

  it('fails on an unhandled rejection and on an uncaught error', async () => {
    const running = run({ expect: {} });
    void Promise.reject(new Error('forgotten'));
    expect((await running).failures.join()).toContain('unhandled rejection: Error: forgotten');
  });
});
