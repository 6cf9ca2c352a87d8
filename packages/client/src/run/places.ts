import type { AnyAction } from '../model/handler.js';
import type { Target } from '../model/states.js';
import { isUnplanned, type Header } from '../queue/stored.js';
import { partAt } from '../queue/parts.js';

type Actions = ReadonlyMap<string, AnyAction>;

/** Where the operations of an action run: where the bulk operation's target is, unless the action says otherwise. */
export function placeOf(target: Target, action: AnyAction | undefined): Target {
  return action?.kind === 'batch' ? (action.runsAt ?? target) : target;
}

/** Where the batch at the cursor runs; a plan runs at its target. */
export function presentPlace(header: Header, actions: Actions): Target {
  const { target, cursor } = header;
  return isUnplanned(header) ? target : placeOf(target, actions.get(partAt(header, cursor).action));
}

/** All places where a bulk operation has work; what a plan will make counts at its target until it is known (R17). */
export function placesOf(header: Header, actions: Actions): readonly Target[] {
  const { target, parts } = header;
  if (isUnplanned(header)) return [target];
  return [...new Set(parts.map(({ action }) => placeOf(target, actions.get(action))))];
}
