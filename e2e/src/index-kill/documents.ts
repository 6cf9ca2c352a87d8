/** A document of the device, before it is written. */
export interface Person {
  readonly _id: string;
  readonly name: string;
  readonly parent?: Place;
}
interface Place {
  readonly _id: string;
  readonly parent?: Place;
}

const padded = (kind: string, at: number): string => `${kind}-${String(at).padStart(5, '0')}`;

/** People in households of twenty, in areas of fifty households; one in fifty lives nowhere. */
export function person(at: number): Person {
  const _id = padded('person', at);
  const name = `Person ${String(at)}`;
  if (at % 50 === 49) return { _id, name };
  const household = Math.floor(at / 20);
  return {
    _id,
    name,
    parent: { _id: padded('household', household), parent: { _id: padded('area', household % 50) } },
  };
}

/** Whether it is deleted after it was written. */
export function isDeleted(at: number): boolean {
  return at % 97 === 96;
}

/** The places that a person is found by. */
export function places({ parent }: Pick<Person, 'parent'>): string[] {
  const found: string[] = [];
  for (let place = parent; place !== undefined; place = place.parent) found.push(place._id);
  return found;
}

/** A row of the index as text. */
export function rowText(key: string, id: string): string {
  return `${key} ${id}`;
}

/** All rows that the index must have, in its order: worked out without it. */
export function truth(documents: number): string[] {
  const rows: string[] = [];
  for (let at = 0; at < documents; at += 1) {
    const one = person(at);
    if (!isDeleted(at)) rows.push(...places(one).map((key) => rowText(key, one._id)));
  }
  return rows.sort();
}
