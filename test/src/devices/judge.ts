import type { BulkOperationStatus, DocumentEvent, FailedOperation } from '@afield/client';
import { firstValueFrom } from 'rxjs';
import { cameBack, outOfOrder, unasked, unequal } from './checks.js';
import type { TestDevice } from './device.js';
import { knownOf, type Known } from './known.js';
import { firstDocuments } from './operations.js';
import { outcomeOf, untruth, type Judged } from './truths.js';
import type { World } from './world.js';

/** What came out of a run. */
export interface Verdict {
  /** What is not as it must be, in words. */
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

/** Revisions beyond those of applied operations that a run may need, for each operation: twice what the worst run needed. */
const mostExtraWrites = 1;

/** Holds everything that the devices say against what they and the server have. */
export async function judgeWorld(world: World): Promise<Verdict> {
  const violations: string[] = [];
  const judged: Judged[] = [];
  for (const device of world.devices) {
    const { events, failures } = await device.outcomes();
    violations.push(...device.refusals.map((line) => `${device.name} did not queue ${line}`));
    violations.push(...(await wrongResults(device, await world.results)));
    const byKey = byKeyOf(events, failures);
    for (const asked of device.asked) {
      const { event, failure } = byKey.get(asked.key) ?? {};
      judged.push({ asked, outcome: outcomeOf(event, failure), sawNone: device.sawNone(asked) });
    }
  }
  const open = await openConflicts(world);
  const there = new Set(firstDocuments(world.ids).map(({ _id }) => _id));
  let revisions = 0;
  for (const id of world.ids) {
    const known = await knownOf(id, there.has(id), world.places, 'server');
    revisions += revisionsOf(known);
    const ofDocument = judged.filter(({ asked }) => asked.id === id);
    // Only edits past the queue may be left for a person to decide.
    const left = world.foreign.has(id) ? open : new Map<string, ReadonlySet<string>>();
    violations.push(...unequal(known, world.places, left));
    for (const one of ofDocument) {
      const { asked } = one;
      const why = untruth(one, known, ofDocument);
      if (why !== undefined) violations.push(`${id}: ${asked.key} (${asked.action}): ${why}`);
    }
    if (world.foreign.has(id)) continue; // an edit past the queue may do what no operation does
    violations.push(...cameBack(known, ofDocument), ...outOfOrder(known, ofDocument), ...unasked(known, ofDocument));
  }
  const count = (is: string): number => judged.filter(({ outcome }) => outcome.is === is).length;
  const applied = count('applied');
  const extra = revisions - there.size - applied;
  if (extra > mostExtraWrites * judged.length) {
    violations.push(`${String(extra)} revisions were written beyond those of the operations: healing does not end`);
  }
  const kills = world.devices.reduce((sum, device) => sum + device.kills, 0);
  const counts = { applied, already: count('already-applied'), failed: count('failed'), extra, kills };
  return { violations, counts: { ...counts, conflicts: open.get('server')?.size ?? 0, rounds: world.rounds } };
}

function byKeyOf(
  events: readonly DocumentEvent[],
  failures: readonly FailedOperation[],
): Map<string, { event?: DocumentEvent; failure?: FailedOperation }> {
  const byKey = new Map<string, { event?: DocumentEvent; failure?: FailedOperation }>();
  for (const event of events) byKey.set(event.key, { event });
  for (const failure of failures) {
    if (failure.key !== undefined) byKey.set(failure.key, { ...byKey.get(failure.key), failure });
  }
  return byKey;
}

function revisionsOf({ trees }: Known): number {
  return new Set([...trees.values()].flatMap(({ leaves }) => leaves.flatMap(({ history }) => history))).size;
}

/** Losing revisions that each device shows as open conflicts, as `id rev`. The server has what all devices show. */
async function openConflicts({ devices }: World): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const open = new Map<string, ReadonlySet<string>>();
  for (const { name, client, device } of devices) {
    const list = await device.until(firstValueFrom(client.conflicts$));
    open.set(name, new Set(list.flatMap(({ id, losing }) => losing.map((rev) => `${id} ${rev}`))));
  }
  return open.set('server', new Set([...open.values()].flatMap((shown) => [...shown])));
}

/** The results on the server say of each bulk operation what its device says (S1). */
async function wrongResults(
  { name, client, device }: TestDevice,
  results: readonly Record<string, unknown>[],
): Promise<string[]> {
  const store = await device.until(client.storeId);
  let shown: readonly BulkOperationStatus[] = [];
  client.bulkOperations$.subscribe((now) => (shown = now)).unsubscribe();
  const fields = ['state', 'total', 'applied', 'alreadyApplied', 'failed'] as const;
  return shown.flatMap((bulk) => {
    const found = results.find((doc) => doc['store'] === store && doc['bulkOperation'] === bulk.id && 'state' in doc);
    if (found === undefined) return [`${name}: the server has no result of ${bulk.key}`];
    return fields.flatMap((field) =>
      found[field] === bulk[field]
        ? []
        : [
            `${name}: of ${bulk.key} the server says ${field} ${String(found[field])}, the device ${String(bulk[field])}`,
          ],
    );
  });
}
