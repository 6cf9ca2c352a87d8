import { isDeepStrictEqual } from 'node:util';
import type { FailedOperation } from '@afield/client';
import type { Baseline } from './baseline.js';
import { checkEvents } from './check-events.js';
import { checkDocs } from './check-docs.js';
import { checkFeed } from './check-feed.js';
import { checkIndex } from './check-index.js';
import { checkResults } from './check-results.js';
import { tooMany } from './check-now.js';
import type { Expectation } from './schema.js';
import type { World } from './world.js';

/** What a check looks at. */
export interface Seen {
  readonly world: World;
  readonly baseline: Baseline;
}

type Wrong = readonly string[];
type Checks = {
  readonly [Field in keyof Expectation]-?: (
    expected: NonNullable<Expectation[Field]>,
    seen: Seen,
    all: Expectation,
  ) => Wrong | Promise<Wrong>;
};

/** Compares the end of a run with all that the case expects; answers with what is wrong. */
export async function checkExpectations(expect: Expectation, seen: Seen): Promise<Wrong> {
  const wrong: string[] = [];
  for (const [field, expected] of Object.entries(expect)) {
    const check = Object.hasOwn(checks, field) ? (checks[field as keyof Checks] as Checks[keyof Checks]) : undefined;
    if (check === undefined || expected === undefined) continue;
    wrong.push(...(await check(expected as never, seen, expect)));
  }
  if (expect.enqueue_rejected === undefined) wrong.push(...(checks.enqueue_rejected([], seen, expect) as Wrong));
  return wrong;
}

const checks: Checks = {
  state: (expected, { world }) => differs('state', expected, world.observation.state),
  failed_operations: (expected, { world }) => failedOperations(expected, world),
  docs: (expected, { world }) => checkDocs('docs', expected, world.local),
  server_docs: (expected, { world }) => checkDocs('server_docs', expected, world.main),
  server_users: (expected, { world }) => checkDocs('server_users', expected, world.users),
  untouched: (expected, { baseline, world }) =>
    untouched(
      'untouched',
      expected,
      world.given.target === 'local' ? baseline.local : (baseline.server ?? baseline.local),
    ),
  server_untouched: (expected, { baseline }) => untouched('server_untouched', expected, baseline.server),
  server_deleted: async (expected, { baseline }) =>
    differs('server_deleted', [...expected].sort(), (await baseline.server?.deleted()) ?? 'no server'),
  revs_added: (expected, seen) => revisions('revs_added', expected, seen, (added, wanted) => added === wanted),
  revs_added_max: (expected, seen) => revisions('revs_added_max', expected, seen, (added, most) => added <= most),
  row_attempts_max: (expected, { world }) => tooMany('row_attempts_max', expected, world.traffic.rowAttempts),
  attempts: (expected, { world }) => differs('attempts', expected, offsets(world).length),
  attempts_max: (expected, { world }) =>
    offsets(world).length <= expected
      ? []
      : [`attempts_max: at most ${String(expected)}, but there were ${String(offsets(world).length)}`],
  attempt_offsets_s: (expected, { world }, all) => offsetsFit(expected, offsets(world), all.tolerance?.offset_pct ?? 0),
  second_attempt_between_s: ([least, most], { world }) => {
    const second = offsets(world)[1];
    return second !== undefined && second >= least && second <= most
      ? []
      : [
          `second_attempt_between_s: expected ${String(least)} to ${String(most)}, but it was ${String(second ?? 'never')}`,
        ];
  },
  attempts_after_wake_max: (expected, { world }) => attemptsAfterWake(expected, world),
  elapsed_max_s: (expected, { world }) => {
    const elapsed = ((world.observation.endedAt ?? world.clock.elapsed) - world.startedAt) / 1000;
    return elapsed <= expected ? [] : [`elapsed_max_s: at most ${String(expected)}, but it took ${String(elapsed)}`];
  },
  tolerance: () => [],
  requests_max: (expected, { world }) => tooMany('requests_max', expected, world.traffic.requests),
  observed: (expected, { world }) => {
    let from = 0;
    for (const state of expected) {
      const at = world.observation.states.indexOf(state, from);
      if (at < 0)
        return [`observed: expected ${expected.join(', ')}, but seen were ${world.observation.states.join(', ')}`];
      from = at + 1;
    }
    return [];
  },
  last_error_class: (expected, { world }) => differs('last_error_class', expected, world.observation.lastErrorClass),
  events: (expected, { world }) => checkEvents(expected, world),
  applied_once: (expected, seen) => appliedOnce(expected, seen),
  never_done: (expected, { world }) =>
    expected.filter((key) => world.observation.shownDone.has(key)).map((key) => `never_done: ${key} was shown as done`),
  quarantine: (expected, { world }) =>
    differs('quarantine', once(expected), once(world.observation.quarantine.map(({ key }) => key))),
  enqueue_rejected: (expected, { world }) =>
    differs('enqueue_rejected', once(expected), once(world.rejectedKeys)).map((line) =>
      [line, ...world.rejections].join('; '),
    ),
  same_rev_both_sides: async (expected, { world }) => {
    const wrong: string[] = [];
    for (const id of expected) {
      const [here, there] = [await world.local.winner(id), await world.main?.winner(id)];
      if (here === undefined || here.rev !== there?.rev) {
        wrong.push(
          `same_rev_both_sides: ${id} is ${here?.rev ?? 'absent'} here and ${there?.rev ?? 'absent'} on the server`,
        );
      }
    }
    return wrong;
  },
  doc_count_delta: async (expected, { world, baseline }) => {
    const wrong: string[] = [];
    const ours = world.given.target === 'local' || world.main === undefined ? 'docs' : 'main';
    const wanted = typeof expected === 'number' ? { [ours]: expected } : expected;
    for (const [word, delta] of Object.entries(wanted)) {
      const base = word === 'main' || word === 'server' ? baseline.server : baseline.local;
      const now = base === undefined ? 'no database' : (await base.database.liveIds()).length - base.live.size;
      wrong.push(...differs(`doc_count_delta ${word}`, delta, now));
    }
    return wrong;
  },
  attachments: async (expected, { world }) => {
    const database = world.given.target === 'server' && world.main !== undefined ? world.main : world.local;
    const wrong: string[] = [];
    for (const { id, name, data } of expected) {
      wrong.push(...differs(`attachments ${id}/${name}`, data, await database.attachment(id, name)));
    }
    return wrong;
  },
  attachment_uploads: (expected, { world }) => differs('attachment_uploads', expected, world.traffic.attachmentUploads),
  prototype_clean: (expected) =>
    expected.filter((name) => name in {}).map((name) => `prototype_clean: every object has a member ${name}`),
  index: (expected, { world }) => checkIndex(expected, world),
  server_results: (expected, { world }) => checkResults(expected, world),
  changes_feed_whole: (expected, { world }) => feeds(expected, world),
  next_attempt_never_past: (expected, { world }) =>
    expected ? world.observation.pastAttempts.map((what) => `next_attempt_never_past: ${what}`) : [],
};

/** `true`, or ids of documents that must be in the feed. Both sides of a device are looked at. */
async function feeds(expected: unknown, { given, local, main }: World): Promise<Wrong> {
  const ids = Array.isArray(expected) && expected.every((one) => typeof one === 'string') ? expected : [];
  if (expected !== true && ids.length === 0)
    return [`changes_feed_whole: the runner does not know ${JSON.stringify(expected)}`];
  const [ofLocal, ofServer] = given.target === 'local' ? [ids, []] : [[], ids];
  return [
    ...(await checkFeed('local', local, ofLocal)),
    ...(main === undefined ? [] : await checkFeed('server', main, ofServer)),
  ];
}

/** Keys in their order, each once: two operations may have one key. */
function once(keys: readonly string[]): readonly string[] {
  return [...new Set(keys)].sort();
}

function differs(field: string, expected: unknown, is: unknown): Wrong {
  if (isDeepStrictEqual(expected, is)) return [];
  return [`${field}: expected ${JSON.stringify(expected)}, but it is ${JSON.stringify(is) ?? 'absent'}`];
}

/** Starts of the attempts in seconds after the first one. */
function offsets(world: World): readonly number[] {
  const times = attemptTimes(world);
  return times.map((time) => (time - (times[0] ?? 0)) / 1000);
}

/** Starts of the attempts in milliseconds: of the push, where a local case's faults hit the push. */
function attemptTimes({ observation, given }: World): readonly number[] {
  const push = given.target === 'local' && given.faults.some((one) => one.at === 'request' || one.at === 'row');
  return push ? observation.pushAttempts : observation.attempts;
}

function offsetsFit(expected: readonly number[], are: readonly number[], tolerancePct: number): Wrong {
  const fits = expected.every((wanted, index) => {
    const is = are[index];
    return is !== undefined && Math.abs(is - wanted) <= (wanted * tolerancePct) / 100;
  });
  return fits
    ? []
    : [
        `attempt_offsets_s: expected ${expected.join(', ')}, but they were ${are.slice(0, expected.length + 2).join(', ')}`,
      ];
}

function attemptsAfterWake(most: number, world: World): Wrong {
  const woke = world.faults.wokeAtS;
  if (woke === undefined) return ['attempts_after_wake_max: the device never slept'];
  const after = attemptTimes(world).filter((time) => time >= woke * 1000).length;
  return after <= most ? [] : [`attempts_after_wake_max: at most ${String(most)}, but there were ${String(after)}`];
}

function failedOperations(
  expected: NonNullable<Expectation['failed_operations']>,
  { observation, given }: World,
): Wrong {
  const open = [...observation.failures];
  const isLabelled = (label: string, { key, id }: FailedOperation): boolean =>
    given.operations.some((one) => one.label === label && one.key === key && one.id === id);
  const wrong: string[] = [];
  for (const want of expected) {
    const at = open.findIndex(
      (failure) =>
        (want.key === undefined || failure.key === want.key) &&
        (want.label === undefined || isLabelled(want.label, failure)) &&
        (typeof want.id !== 'string' || failure.id === want.id) &&
        (want.code === undefined || failure.code === want.code) &&
        (want.code_in === undefined || want.code_in.includes(failure.code)),
    );
    if (at < 0) wrong.push(`failed_operations: expected ${JSON.stringify(want)}, but it is not there`);
    else open.splice(at, 1);
  }
  const more = open.map(({ key, id, code, reason }) => JSON.stringify({ key, id, code, reason }));
  return [...wrong, ...more.map((one) => `failed_operations: not expected ${one}`)];
}

async function untouched(field: string, ids: readonly string[], base: Baseline['server']): Promise<Wrong> {
  const wrong: string[] = [];
  for (const id of ids) {
    if (base === undefined || !(await base.isUntouched(id))) wrong.push(`${field}: ${id} was changed`);
  }
  return wrong;
}

async function revisions(
  field: string,
  expected: Readonly<Record<string, number>>,
  { world, baseline }: Seen,
  fits: (added: number, wanted: number) => boolean,
): Promise<Wrong> {
  const wrong: string[] = [];
  for (const [name, wanted] of Object.entries(expected)) {
    const onServer = name.startsWith('main:') || world.given.target === 'server';
    const base = onServer ? baseline.server : baseline.local;
    const added = await base?.revisionsAdded(name.replace(/^main:/, ''));
    if (added === undefined || !fits(added, wanted)) {
      wrong.push(`${field} ${name}: expected ${String(wanted)}, but there are ${String(added)}`);
    }
  }
  return wrong;
}

/** Each operation that counts as applied once added one revision to its document; edits of others do not count. */
async function appliedOnce(keys: readonly string[], { world, baseline }: Seen): Promise<Wrong> {
  const base = world.given.target === 'server' ? baseline.server : baseline.local;
  const wrong: string[] = [];
  // Two operations with one key are one change, that of the first.
  const ids = [...new Set(keys)].flatMap((key) => {
    const operation = world.given.operations.find((one) => one.key === key);
    return operation === undefined ? [] : [String(operation.id)];
  });
  for (const id of new Set(ids)) {
    const wanted = ids.filter((one) => one === id).length;
    const added = ((await base?.revisionsAdded(id)) ?? 0) - (world.foreignEdits.get(id) ?? 0);
    if (added !== wanted)
      wrong.push(`applied_once: ${id} got ${String(added)} revisions from ${String(wanted)} operations`);
  }
  return wrong;
}
