import type { Doc, Json } from '@afield/client';
import fc from 'fast-check';

/** Contacts `c0` …, who is below whom, and what names them. */
export interface Forest {
  readonly docs: readonly Doc[];
  /** Ids of all contacts, also of those that are not on the device. */
  readonly ids: readonly string[];
}

interface Plant {
  readonly parents: readonly (number | null)[];
  readonly absent: readonly number[];
  readonly places: readonly { readonly place: number; readonly contact: number }[];
  readonly reports: readonly {
    readonly by: number;
    readonly about: number;
    readonly how: 'id' | 'code' | 'top' | 'number';
  }[];
  readonly extras: readonly number[];
}

/** Forests in which each lineage is right; some contacts are not on the device, some lineages have other fields, too. */
export const forest: fc.Arbitrary<Forest> = fc
  .integer({ min: 2, max: 14 })
  .chain((count) => {
    const contact = fc.nat({ max: count - 1 });
    return fc.record({
      parents: fc.tuple(
        ...Array.from({ length: count }, (_, at) =>
          at === 0 ? fc.constant(null) : fc.option(fc.nat({ max: at - 1 }), { freq: 5 }),
        ),
      ),
      absent: fc.array(contact, { maxLength: 2 }),
      places: fc.array(fc.record({ place: contact, contact }), { maxLength: 5 }),
      reports: fc.array(
        fc.record({ by: contact, about: contact, how: fc.constantFrom('id', 'code', 'top', 'number') }),
        { maxLength: 8 },
      ),
      extras: fc.array(contact, { maxLength: 3 }),
    });
  })
  .map(grow);

function grow({ parents, absent, places, reports, extras }: Plant): Forest {
  const name = (at: number): string => `c${String(at)}`;
  const lineage = (at: number): Json => {
    const parent = parents[at];
    const more = extras.includes(at) ? { name: 'Contact' } : {};
    return { _id: name(at), ...more, ...(parent === null || parent === undefined ? {} : { parent: lineage(parent) }) };
  };
  const contacts = parents.map((parent, at): Doc => {
    const place = places.find((one) => one.place === at);
    return {
      _id: name(at),
      type: 'contact',
      contact_type: 'any',
      ...(parent === null ? {} : { parent: lineage(parent) }),
      ...(place === undefined ? {} : { contact: lineage(place.contact) }),
      // Each has a code of its own; the last one has none.
      ...(at === parents.length - 1 ? {} : { patient_id: String(1000 + at) }),
    };
  });
  const sent = reports.map(({ by, about, how }, at): Doc => {
    const said = {
      id: { fields: { patient_uuid: name(about), other: 1 } },
      code: { fields: { patient_id: String(1000 + about), other: 1 } },
      number: { fields: { place_id: 1000 + about } },
      top: { patient_id: String(1000 + about), fields: { note: 'visit' } },
    }[how];
    return { _id: `r${String(at)}`, type: 'data_record', form: 'visit', contact: lineage(by), ...said };
  });
  const here = contacts.filter((_contact, at) => !absent.includes(at));
  return { docs: [...here, ...sent], ids: contacts.map(({ _id }) => _id) };
}
