import { isPlace, type Entry, type Places } from './catalogue.js';
import { withoutThoseBelow } from './plan-move.js';

/** In which types of places a record of a type lies. A district lies in none. */
const typesAbove: Readonly<Record<string, readonly string[]>> = {
  district_hospital: [],
  health_center: ['district_hospital'],
  clinic: ['health_center'],
  person: ['clinic', 'health_center'],
};

/** The places into which all of the chosen records can move, from the top down. */
export function moveTargets(places: Places, ids: readonly string[]): readonly Entry[] {
  const roots = withoutThoseBelow(places, ids)
    .map((id) => places.get(id))
    .filter((entry) => entry !== undefined);
  const chosen = new Set(roots.map(({ id }) => id));
  const types = [...new Set(roots.map(({ type }) => type))].map((type) => typesOfPlacesFor(places, type));
  return fromTheTop(places, chosen).filter(
    ({ id, type }) => types.every((fitting) => fitting.has(type)) && !roots.every(({ parentId }) => parentId === id),
  );
}

/** Why there is no target at all: one sentence for people. */
export function noTargets(places: Places, ids: readonly string[]): string {
  const types = new Set(withoutThoseBelow(places, ids).map((id) => places.get(id)?.type));
  if (types.has('district_hospital')) return 'A district lies in no other place: it can’t be moved.';
  if (types.size > 1) return 'No place takes all of these: choose records of one kind.';
  return 'There is no other place for this on the device.';
}

/** A type that has no rule goes where others of its type lie. */
function typesOfPlacesFor(places: Places, type: string): ReadonlySet<string> {
  if (Object.prototype.hasOwnProperty.call(typesAbove, type)) return new Set(typesAbove[type]);
  const found = new Set<string>();
  for (const entry of places.entries()) {
    if (entry.type !== type || entry.parentId === undefined) continue;
    const above = places.get(entry.parentId);
    if (above && isPlace(above) && above.type !== type) found.add(above.type);
  }
  return found;
}

/** All places but the left out ones with what lies in them. */
function fromTheTop(places: Places, leftOut: ReadonlySet<string>): Entry[] {
  const found: Entry[] = [];
  const inside = (id: string | undefined): Entry[] =>
    places.childrenOf(id).filter((entry) => isPlace(entry) && !leftOut.has(entry.id));
  for (let level = inside(undefined); level.length > 0; level = level.flatMap(({ id }) => inside(id))) {
    found.push(...level);
  }
  return found;
}
