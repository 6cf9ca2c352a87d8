import { isDeepStrictEqual } from 'node:util';
import {
  failuresDocument,
  resultDocument,
  type FailureRow,
  type FailuresDocument,
  type ResultDocument,
} from '@afield/client/results';
import { isObject, type JsonObject } from './json.js';
import type { World } from './world.js';

/** A failure as the server has it. */
type ServerFailure = Pick<FailureRow, 'id' | 'code'> & { readonly key: string | undefined };

/** What the server has of results, as far as no person has decided on it. */
interface Told {
  readonly results: readonly ResultDocument[];
  readonly failures: readonly ServerFailure[];
}

const counts = ['total', 'applied', 'alreadyApplied', 'failed', 'notDone'] as const;

/**
 * Compares what the database of results has with what a case expects: `true` (what is shown here is there), how many
 * results, the keys of operations that a result tells of, or an object with counts, a state and failed operations. Whatever
 * it expects, what is there must be what is shown here.
 */
export async function checkResults(expected: unknown, world: World): Promise<readonly string[]> {
  const told = await toldOf(world);
  const wrong = [...disagreements(told, world)];
  const differs = (field: string, wanted: unknown, is: unknown): void => {
    if (isDeepStrictEqual(wanted, is)) return;
    wrong.push(`server_results ${field}: expected ${JSON.stringify(wanted)}, but it is ${JSON.stringify(is)}`);
  };
  if (typeof expected === 'number') differs('count', expected, told.results.length);
  else if (Array.isArray(expected)) wrong.push(...listed(expected, told, world));
  else if (isObject(expected)) {
    for (const [word, wanted] of Object.entries(expected)) {
      if (word === 'failed_operations' && Array.isArray(wanted)) wrong.push(...listed(wanted, told, world, true));
      else if (word === 'state') differs(word, wanted, stateOf(told));
      else if (word === 'count') differs(word, wanted, told.results.length);
      else {
        const field = counts.find((one) => plain(one) === plain(word === 'done' ? 'applied' : word));
        if (field === undefined) wrong.push(`server_results: the runner does not know the word ${word}`);
        else
          differs(
            word,
            wanted,
            told.results.reduce((sum, one) => sum + one[field], 0),
          );
      }
    }
  } else if (expected !== true) wrong.push(`server_results: the runner does not know ${JSON.stringify(expected)}`);
  return wrong;
}

async function toldOf({ databases, queued, observation }: World): Promise<Told> {
  const results: ResultDocument[] = [];
  const chunks: FailuresDocument[] = [];
  for (const id of (await databases.results?.liveIds()) ?? []) {
    const doc = (await databases.results?.winner(id))?.doc;
    const [result, chunk] = [resultDocument.safeParse(doc), failuresDocument.safeParse(doc)];
    if (result.success) results.push(result.data);
    if (chunk.success) chunks.push(chunk.data);
  }
  const keyOf = (bulkOperation: string | null, index: number | null): string | undefined => {
    const key = observation.bulkOperations.find((one) => one.id === bulkOperation)?.key;
    return key === undefined || index === null ? undefined : queued.get(key)?.[index];
  };
  const failures = chunks.flatMap(({ bulkOperation, operations }) =>
    operations.flatMap(({ index, id, code, resolution }) =>
      resolution === undefined ? [{ key: keyOf(bulkOperation, index), id, code }] : [],
    ),
  );
  return { results, failures };
}

/** What is shown here and not there, or otherwise there. */
function disagreements({ results, failures }: Told, { observation }: World): readonly string[] {
  const wrong: string[] = [];
  for (const one of observation.bulkOperations) {
    const there = results.filter(({ bulkOperation }) => bulkOperation === one.id);
    const [first] = there;
    if (first === undefined) wrong.push(`server_results: nothing tells of ${one.key}`);
    else if (there.length > 1) wrong.push(`server_results: ${one.key} is told of ${String(there.length)} times`);
    else {
      const [here, told] = [pick(one), pick(first)];
      if (!isDeepStrictEqual(here, told)) {
        wrong.push(`server_results: of ${one.key} it has ${JSON.stringify(told)}, but here is ${JSON.stringify(here)}`);
      }
    }
  }
  const sorted = (list: readonly { id?: unknown; code: string }[]): string[] =>
    list.map(({ id, code }) => `${String(id ?? null)} ${code}`).sort();
  const [here, there] = [
    sorted(observation.failures.filter(({ resolution }) => resolution === undefined)),
    sorted(failures),
  ];
  if (!isDeepStrictEqual(here, there)) {
    wrong.push(`server_results: it has the failures ${there.join(', ')}, but here are ${here.join(', ')}`);
  }
  return wrong;
}

function pick({
  state,
  total,
  applied,
  failed,
}: Pick<ResultDocument, 'state' | 'total' | 'applied' | 'failed'>): JsonObject {
  return { state, total, applied, failed };
}

/** Keys that must be told of, or failures that must be there; `exactly`: and no others. */
function listed(
  list: readonly unknown[],
  { results, failures }: Told,
  { observation, queued }: World,
  exactly = false,
): readonly string[] {
  const told = new Set(
    observation.bulkOperations
      .filter(({ id }) => results.some(({ bulkOperation }) => bulkOperation === id))
      .flatMap(({ key }) => queued.get(key) ?? []),
  );
  const open = [...failures];
  const wrong: string[] = [];
  for (const one of list) {
    if (typeof one === 'string') {
      if (!told.has(one)) wrong.push(`server_results: nothing tells of ${one}`);
      continue;
    }
    const at = open.findIndex((failure) => isObject(one) && isThat(failure, one));
    if (at < 0) wrong.push(`server_results: expected the failure ${JSON.stringify(one)}, but it is not there`);
    else open.splice(at, 1);
  }
  return exactly ? [...wrong, ...open.map((one) => `server_results: not expected ${JSON.stringify(one)}`)] : wrong;
}

function isThat(failure: ServerFailure, { key, id, code, code_in: codes }: JsonObject): boolean {
  return (
    (key === undefined || key === failure.key) &&
    (id === undefined || (id ?? null) === failure.id) &&
    (code === undefined || code === failure.code) &&
    (!Array.isArray(codes) || codes.includes(failure.code))
  );
}

/** The state of all of them, as that of the case. */
function stateOf({ results }: Told): string {
  const states = results.map(({ state }) => state);
  return (
    states.find((state) => state === 'failed') ??
    states.find((state) => !['done', 'done-with-failures'].includes(state)) ??
    states.find((state) => state === 'done-with-failures') ??
    states[0] ??
    'idle'
  );
}

function plain(word: string): string {
  return word.replaceAll('_', '').toLowerCase();
}
