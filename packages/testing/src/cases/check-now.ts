import { isDeepStrictEqual } from 'node:util';
import type { Step } from './schema.js';
import type { World } from './world.js';

/** Compares what a `check` step says with what is shown now; answers with what is wrong. */
export function checkNow(step: Extract<Step, { do: 'check' }>, world: World): readonly string[] {
  const { observation, traffic } = world;
  const wrong: string[] = [];
  const states = observation.statesNow;
  if (step.state !== undefined && !states.includes(step.state)) {
    wrong.push(`state: expected ${step.state}, but it is ${states.join(', ')}`);
  }
  if (step.state_in !== undefined && !step.state_in.some((state) => states.includes(state))) {
    wrong.push(`state_in: expected one of ${step.state_in.join(', ')}, but it is ${states.join(', ')}`);
  }
  const { push, pull, results, publishers = {} } = observation.status ?? {};
  const transfers = [push, pull, results, ...Object.values(publishers)];
  const causes = [...observation.bulkOperations, ...transfers].map((one) => one?.lastError?.code);
  if (step.cause !== undefined && !causes.includes(step.cause)) {
    wrong.push(`cause: expected ${step.cause}, but there is ${causes.join(', ')}`);
  }
  if (step.done_keys !== undefined && !isDeepStrictEqual(sorted(observation.doneKeys), sorted(step.done_keys))) {
    wrong.push(
      `done_keys: expected ${sorted(step.done_keys).join(', ')}, but done are ${sorted(observation.doneKeys).join(', ')}`,
    );
  }
  const index = world.index.state(world.tabs);
  if (step.index_state !== undefined && index?.state !== step.index_state) {
    wrong.push(`index_state: expected ${step.index_state}, but it is ${index?.state ?? 'not there'}`);
  }
  const parkedId = index?.state === 'parked' ? index.id : undefined;
  if (step.parked_id !== undefined && parkedId !== step.parked_id) {
    wrong.push(`parked_id: expected ${step.parked_id}, but it is ${parkedId ?? 'not there'}`);
  }
  return [...wrong, ...tooMany('requests_max', step.requests_max ?? {}, traffic.requests)];
}

/** What was counted more often than allowed. */
export function tooMany(
  field: string,
  most: Readonly<Record<string, number>>,
  counted: ReadonlyMap<string, number>,
): readonly string[] {
  return Object.entries(most)
    .filter(([key, limit]) => (counted.get(key) ?? 0) > limit)
    .map(([key, limit]) => `${field}: at most ${String(limit)} of ${key}, but there were ${String(counted.get(key))}`);
}

function sorted(list: readonly string[]): readonly string[] {
  return [...list].sort();
}
