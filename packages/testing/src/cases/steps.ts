import { operationInput } from './actions.js';
import { merged } from './fault-book.js';
import type { Operation, Step } from './schema.js';
import type { Tab } from './tab.js';
import type { World } from './world.js';
import { checkNow } from './check-now.js';

const longestSettleMs = 20 * 60_000;
const mostTimers = 5000;

/** Does the steps of a case, in order; answers with what its `check` steps found wrong. */
export async function takeSteps(world: World): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const [index, step] of world.given.steps.entries()) {
    if (step.do !== 'sleep') world.faults.reach(step.do);
    if (step.do === 'check') {
      wrong.push(...checkNow(step, world).map((line) => `step ${String(index + 1)}, check: ${line}`));
    } else {
      await take(step, world);
    }
    await allDueNow(world);
  }
  return wrong;
}

/** A step ends when nothing is left to do at the present time: timers that are due now have fired. */
function allDueNow(world: World): Promise<void> {
  return world.clock.advance(0);
}

async function take(step: Step, world: World): Promise<void> {
  switch (step.do) {
    case 'enqueue-all':
      return enqueue(world, world.given.operations);
    case 'enqueue':
      return enqueue(world, chosen(step, world.given.operations));
    case 'start':
      return world.start(step.tab);
    case 'settle':
      return settle(world);
    case 'advance':
      return world.clock.advance(step.s * 1000);
    case 'online':
      return world.connectivity.set(true);
    case 'login':
      return world.login();
    case 'arm-faults':
      world.faults.armed = true;
      return;
    case 'edit':
      return edit(world, step.doc);
    case 'build-index':
      world.index.build(livingTab(world));
      return;
    case 'resume-index':
      world.index.resume(livingTab(world));
      return;
    case 'query-index':
      world.index.query(world.tabs);
      return;
    case 'restart':
      world.moments.reach('after-enqueue');
      return world.restart(step.tab ?? 1, world.moments.restartKills);
    case 'server-rollback':
      return world.rollback.happen(world.observation.status);
    case 'clock-jump':
      world.moments.clockStep('clock-jump');
      return;
    case 'sleep':
      world.moments.clockStep('sleep');
      world.faults.reach('sleep');
      return;
    default:
      return;
  }
}

/** Queues one bulk operation. It may be refused, or hang with its store: the next step does not wait for it. */
async function enqueue(world: World, operations: readonly Operation[]): Promise<void> {
  if (operations.length === 0) return;
  const tab = livingTab(world);
  const key = `bulk-${String(world.queued.size + 1)}`;
  const keys = operations.map((operation, index) => operation.key ?? `${key}:${String(index)}`);
  world.queued.set(key, keys);
  tab.client.enqueue({ target: world.given.target, key, actions: parts(operations) }).then(
    ({ duplicates }) => {
      // What was queued before stands in the bulk operation of then.
      const again = new Set(duplicates.map(({ index }) => index));
      world.queued.set(
        key,
        keys.filter((_, index) => !again.has(index)),
      );
      world.moments.reach('after-enqueue', { tab });
    },
    (error: unknown) => {
      world.rejectedKeys.push(...keys);
      world.rejections.push(String(error));
    },
  );
  await allDueNow(world);
}

function livingTab({ tabs }: World): Tab {
  const tab = tabs.find((one) => one.alive);
  if (tab === undefined) throw new Error('no tab is alive');
  return tab;
}

/** Consecutive operations of one action form a part. */
function parts(
  operations: readonly Operation[],
): { action: string; operations: ReturnType<typeof operationInput>[] }[] {
  const result: { action: string; operations: ReturnType<typeof operationInput>[] }[] = [];
  for (const operation of operations) {
    const last = result.at(-1);
    if (last?.action === operation.action) last.operations.push(operationInput(operation));
    else result.push({ action: operation.action, operations: [operationInput(operation)] });
  }
  return result;
}

/** In the order in which the step names them; a key stands for all operations that have it. */
function chosen(step: Extract<Step, { do: 'enqueue' }>, operations: readonly Operation[]): readonly Operation[] {
  const named = (step.keys ?? []).flatMap((key) => operations.filter((operation) => operation.key === key));
  const listed = [step.index ?? []].flat().flatMap((index) => operations[index] ?? []);
  return [...new Set([...named, ...listed])];
}

/** Runs timers until the client has nothing left to do, at most 20 minutes. */
async function settle(world: World): Promise<void> {
  const { clock } = world;
  const end = clock.monotonic() + longestSettleMs;
  await allDueNow(world);
  for (let fired = 0; ; fired += 1) {
    // What begins within a second of the rest (a push, the results) still belongs to it.
    if (world.isSettled) await clock.advance(1000);
    if (world.isSettled) return;
    const next = clock.nextTimerAt;
    if (next === undefined || next > end) return;
    if (fired > mostTimers) throw new Error(`never comes to rest: ${String(mostTimers)} timers fired`);
    await clock.advance(next - clock.monotonic());
  }
}

async function edit(world: World, doc: Record<string, unknown>): Promise<void> {
  const winner = await world.local.winner(String(doc['_id']));
  const revision = winner === undefined ? {} : { _rev: winner.rev };
  world.foreignEdits.set(String(doc['_id']), (world.foreignEdits.get(String(doc['_id'])) ?? 0) + 1);
  await world.local.write({ ...merged(winner?.doc ?? {}, doc), ...revision });
}
