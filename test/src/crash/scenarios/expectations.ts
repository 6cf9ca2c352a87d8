import type { OperationInput } from '@afield/client';
import { isOutcome } from '../stored.js';
import type { CrashWorld } from '../world.js';

export const home = { _id: 'h1', parent: { _id: 'd1' } };
export const away = { _id: 'h2', parent: { _id: 'd1' } };

/** `set-parent` from home to away. */
export function move(id: string): OperationInput {
  return { id, parent: away, current_parent_id: 'h1' };
}

export function atHome(...ids: readonly string[]): { _id: string; parent: object; name: string }[] {
  return ids.map((_id) => ({ _id, parent: home, name: _id }));
}

/** What the outcomes of a bulk operation must be, in the order of its operations. */
export function outcomesAre(world: CrashWorld, key: string, ...wanted: readonly string[]): readonly string[] {
  const header = world.queue.headers().find((one) => one.key === key);
  if (header === undefined) return [`${key} is not there`];
  const found = world.queue.mutations(header).map(({ row }) => (isOutcome(row) ? (row?.s ?? '') : 'not done'));
  return found.join() === wanted.join() ? [] : [`${key} ended with ${found.join()}, not ${wanted.join()}`];
}

/** What a field of a document must be, where the target's documents are. */
export function fieldIs(world: CrashWorld, id: string, field: string, value: unknown): readonly string[] {
  const found = JSON.stringify(world.documents.read(id)?.[field]);
  const wanted = JSON.stringify(value);
  return found === wanted ? [] : [`${id}.${field} is ${String(found)}, not ${String(wanted)}`];
}

/** The codes of the open failures, in their order. */
export function codesAre(world: CrashWorld, ...wanted: readonly string[]): readonly string[] {
  const open = world.queue.failures().filter(({ resolution }) => resolution === undefined);
  const codes = open.map(({ code }) => code);
  return codes.join() === wanted.join() ? [] : [`the failures are ${codes.join()}, not ${wanted.join()}`];
}
