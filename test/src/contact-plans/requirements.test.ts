import type { AnyPlan, Doc } from '@afield/client';
import { deleteContact, mergeContacts, moveContact } from '@afield/contacts';
import { wrongLineages } from '@afield/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { Documents, total } from './documents.js';

/** Two districts, a health centre with a clinic and its people, a report of each; all lineages are right. */
const town: readonly Doc[] = [
  { _id: 'd1', type: 'district_hospital' },
  { _id: 'd2', type: 'district_hospital', contact: { _id: 'p1', parent: under('c1', 'h1', 'd1') } },
  {
    _id: 'h1',
    type: 'health_center',
    place_id: '501',
    parent: under('d1'),
    contact: { _id: 'n1', parent: under('h1', 'd1') },
  },
  { _id: 'h2', type: 'health_center', place_id: '502', parent: under('d2') },
  { _id: 'n1', type: 'person', parent: under('h1', 'd1') },
  { _id: 'c1', type: 'clinic', place_id: '601', parent: under('h1', 'd1') },
  { _id: 'p1', type: 'person', patient_id: '701', parent: under('c1', 'h1', 'd1') },
  { _id: 'p2', type: 'person', patient_id: '702', parent: under('c1', 'h1', 'd1') },
  {
    _id: 'r1',
    type: 'data_record',
    form: 'visit',
    fields: { patient_id: '701' },
    contact: { _id: 'n1', parent: under('h1', 'd1') },
  },
  {
    _id: 'r2',
    type: 'data_record',
    form: 'visit',
    fields: { place_uuid: 'h2' },
    contact: { _id: 'p1', parent: under('c1', 'h1', 'd1') },
  },
  { _id: 'r3', type: 'data_record', form: 'stock', fields: {}, contact: { _id: 'n2', parent: under('h2', 'd2') } },
];

function under(...ids: string[]): { _id: string } | undefined {
  const [first, ...rest] = ids;
  if (first === undefined) return undefined;
  return rest.length === 0 ? { _id: first } : { _id: first, ...{ parent: under(...rest) } };
}

const settings = (name: string, facility: unknown, contact?: string, more: object = {}): Doc => ({
  _id: `org.couchdb.user:${name}`,
  type: 'user-settings',
  facility_id: facility,
  ...(contact === undefined ? {} : { contact_id: contact }),
  ...more,
});

let documents: Documents;
const ids = async (plan: AnyPlan, request: object): Promise<Record<string, readonly unknown[]>> => {
  const parts = await documents.plan(plan, request);
  return Object.fromEntries(parts.map(({ action, operations }) => [action, operations.map(({ id }) => id)]));
};
const refused = async (plan: AnyPlan, request: object, code: string, said: string): Promise<void> => {
  const before = JSON.stringify(documents.live);
  await expect(documents.run(plan, request)).rejects.toMatchObject({ name: 'PlanRefusedError', code });
  await expect(documents.run(plan, request)).rejects.toThrow(said);
  expect(JSON.stringify(documents.live)).toBe(before);
};

beforeEach(() => {
  documents = new Documents(town);
});

describe('R6 move-contact', () => {
  it('sets the contact, all below it, and the contacts of places and reports, from the top down', async () => {
    expect(await ids(moveContact, { id: 'h1', parent: 'd2' })).toEqual({
      'set-parent': ['h1', 'n1', 'c1', 'p1', 'p2'],
      'set-contact': expect.arrayContaining(['d2', 'h1', 'r1', 'r2']) as unknown,
    });
    await documents.run(moveContact, { id: 'h1', parent: 'd2' });
    expect(documents.get('p1')?.['parent']).toEqual(under('c1', 'h1', 'd2'));
    expect(documents.get('d2')?.['contact']).toEqual({ _id: 'p1', parent: under('c1', 'h1', 'd2') });
    expect(wrongLineages(documents.live)).toEqual([]);
  });

  it('a second run of the same request changes nothing', async () => {
    await documents.run(moveContact, { id: 'c1', parent: 'h2' });
    expect(await documents.plan(moveContact, { id: 'c1', parent: 'h2' })).toEqual([]);
    await documents.run(moveContact, { id: 'c1', parent: null });
    expect(documents.get('c1')).not.toHaveProperty('parent');
    expect(await documents.plan(moveContact, { id: 'c1', parent: null })).toEqual([]);
  });

  it('takes its guards from what it saw: an edit between plan and run is a guard_mismatch, never overwritten', async () => {
    const parts = await documents.plan(moveContact, { id: 'h1', parent: 'd2' });
    documents.put({ _id: 'p1', type: 'person', parent: under('h2', 'd2') });
    documents.put({ ...town[8], _id: 'r1', contact: { _id: 'p2', parent: under('c1', 'h1', 'd1') } });
    const failed = documents.apply(parts).filter(({ is }) => is !== 'applied');
    expect(failed).toEqual([
      { action: 'set-parent', id: 'p1', is: 'guard_mismatch' },
      { action: 'set-contact', id: 'r1', is: 'guard_mismatch' },
    ]);
    expect(documents.get('p1')?.['parent']).toEqual(under('h2', 'd2'));
    // Run again it brings right what has become wrong.
    await documents.run(moveContact, { id: 'h1', parent: 'd2' });
    expect(documents.get('p1')?.['parent']).toEqual(under('h2', 'd2'));
    expect(wrongLineages(documents.live)).toEqual([]);
  });

  it('mends what an earlier move has left behind when it was given up in the middle', async () => {
    const given = await documents.plan(moveContact, { id: 'c1', parent: 'h2' });
    documents.apply(given, (place) => place === 0);
    // p1 and p2 say still that they are below h1; in truth c1, their parent, is below h2 now.
    await documents.run(moveContact, { id: 'h2', parent: 'd1' });
    expect(documents.get('p1')?.['parent']).toEqual(under('c1', 'h2', 'd1'));
    expect(wrongLineages(documents.live)).toEqual([]);
  });

  it('refuses what cannot be, before anything is written', async () => {
    await refused(moveContact, { id: 'h1', parent: 'h1' }, 'circular_lineage', 'is the contact itself');
    await refused(moveContact, { id: 'h1', parent: 'p1' }, 'circular_lineage', 'lies below it');
    await refused(moveContact, { id: 'zz', parent: 'h2' }, 'missing', '"zz"');
    await refused(moveContact, { id: 'h1', parent: 'zz' }, 'missing', '"zz"');
    await refused(moveContact, { id: 'r1', parent: 'h2' }, 'not_a_contact', '"r1"');
  });

  it('S8 refuses a depth over 50 for any document below it', async () => {
    for (let level = 1; level <= 50; level += 1) {
      const above = Array.from({ length: level - 1 }, (_, at) => `x${String(level - 1 - at)}`);
      const parent = under(...above);
      documents.put({ _id: `x${String(level)}`, ...(parent === undefined ? {} : { parent }) });
    }
    // x50 has 49 above it: c1 under it would have 50, p1 below c1 one more.
    await refused(moveContact, { id: 'c1', parent: 'x50' }, 'too_deep', '"p1"');
    await documents.run(moveContact, { id: 'p1', parent: 'x50' });
    expect(wrongLineages(documents.live)).toEqual([]);
  });

  it('S8 refuses a circle in the documents, unless the move ends it', async () => {
    documents.put({ _id: 'o1', parent: { _id: 'o2' } });
    documents.put({ _id: 'o2', parent: { _id: 'o1' } });
    await refused(moveContact, { id: 'h1', parent: 'o1' }, 'circular_lineage', 'comes back to "o1"');
    await refused(deleteContact, { id: 'o1' }, 'circular_lineage', 'circle');
    // Moved out of the circle, there is none any more.
    await documents.run(moveContact, { id: 'o1', parent: 'd1' });
    expect(documents.get('o2')?.['parent']).toEqual(under('o1', 'd1'));
  });

  it.each([
    [{}],
    [{ id: 'h1' }],
    [{ id: '', parent: 'd2' }],
    [{ id: 'h1', parent: 5 }],
    [{ id: 'h1', parent: null, to: 'd2' }],
  ])('S9 does not take %j for a request', async (request) => {
    expect(await moveContact.request['~standard'].validate(request)).toHaveProperty('issues');
  });

  it('brings 3,000 contacts with 5,000 reports below another place, with a few questions at a time', async () => {
    const many: Doc[] = [];
    for (let at = 0; at < 600; at += 1) {
      const clinic = `c-${String(at)}`;
      const people = [0, 1, 2, 3].map((one) => `p-${String(at)}-${String(one)}`);
      many.push({
        _id: clinic,
        type: 'clinic',
        parent: under('h1', 'd1'),
        contact: { _id: people[0], parent: under(clinic, 'h1', 'd1') },
      });
      for (const person of people) many.push({ _id: person, type: 'person', parent: under(clinic, 'h1', 'd1') });
    }
    for (let at = 0; at < 5000; at += 1) {
      const clinic = `c-${String(at % 600)}`;
      const by = { _id: `p-${String(at % 600)}-${String(at % 4)}`, parent: under(clinic, 'h1', 'd1') };
      many.push({
        _id: `v-${String(at)}`,
        type: 'data_record',
        form: 'visit',
        contact: by,
        fields: { patient_uuid: by._id },
      });
    }
    documents = new Documents([...town, ...many]);
    const parts = await documents.plan(moveContact, { id: 'h1', parent: 'd2' });
    expect(total(parts)).toBe(5 + 3000 + 600 + 5000 + 4);
    expect(documents.calls).toBeLessThan(100);
    expect(documents.most).toBeLessThanOrEqual(500);
    expect(documents.apply(parts).every(({ is }) => is === 'applied')).toBe(true);
    expect(wrongLineages(documents.live)).toEqual([]);
    expect(await documents.plan(moveContact, { id: 'h1', parent: 'd2' })).toEqual([]);
    const gone = await documents.plan(deleteContact, { id: 'h1' });
    expect(total(gone)).toBe(3005 + 5000 + 2);
  });
});

describe('R6 merge-contacts', () => {
  beforeEach(() => {
    documents.put({ _id: 'r4', form: 'survey', place_id: '501', fields: { place_uuid: 'h1', note: 'kept' } });
  });
  const merge = { sources: ['h1'], target: 'h2' };

  it('brings children, places and reports to the target, and deletes the sources last', async () => {
    expect(await ids(mergeContacts, merge)).toEqual({
      'set-parent': ['n1', 'c1', 'p1', 'p2'],
      'set-contact': expect.arrayContaining(['d2', 'r1', 'r2']) as unknown,
      update: ['r4'],
      delete: ['h1'],
    });
    await documents.run(mergeContacts, merge);
    expect(documents.get('c1')?.['parent']).toEqual(under('h2', 'd2'));
    expect(documents.get('r4')).toMatchObject({ place_id: '502', fields: { place_uuid: 'h2', note: 'kept' } });
    expect(wrongLineages(documents.live)).toEqual([]);
    expect(await documents.plan(mergeContacts, merge)).toEqual([]);
  });

  it('the target becomes the contact of places and reports that had a source, with its own lineage', async () => {
    documents.put({ _id: 'p9', type: 'person', parent: under('h2', 'd2') });
    documents.put({
      ...town[8],
      _id: 'r5',
      contact: { _id: 'p1', phone: '1', parent: under('c1', 'h1', 'd1') },
      fields: { patient_id: '701' },
    });
    await documents.run(mergeContacts, { sources: ['p1', 'p1', 'p2'], target: 'p9' });
    expect(documents.get('d2')?.['contact']).toEqual({ _id: 'p9', parent: under('h2', 'd2') });
    expect(documents.get('r5')).toMatchObject({
      contact: { _id: 'p9', parent: under('h2', 'd2') },
      fields: { patient_id: 'p9' },
    });
    expect(documents.get('r5')?.['contact']).not.toHaveProperty('phone');
    expect([documents.get('p1'), documents.get('p2')]).toEqual([undefined, undefined]);
  });

  it('a report that someone edits meanwhile is not taken from them', async () => {
    const parts = await documents.plan(mergeContacts, merge);
    documents.put({ _id: 'r4', form: 'survey', place_id: '501', fields: { place_uuid: 'c1' } });
    expect(documents.apply(parts).filter(({ is }) => is !== 'applied')).toEqual([
      { action: 'update', id: 'r4', is: 'guard_mismatch' },
    ]);
    expect(documents.get('r4')?.['fields']).toEqual({ place_uuid: 'c1' });
  });

  it('brings to the target what names a source by its id after the source is gone', async () => {
    await documents.run(mergeContacts, merge);
    documents.put({ _id: 'p8', type: 'person', parent: under('h1', 'd1') });
    expect(await ids(mergeContacts, merge)).toEqual({ 'set-parent': ['p8'] });
  });

  it('refuses what cannot be, before anything is written', async () => {
    await refused(
      mergeContacts,
      { sources: ['h1', 'h2'], target: 'h2' },
      'circular_lineage',
      'is itself among the sources',
    );
    documents.put({ _id: 'h3', type: 'health_center', parent: under('h1', 'd1') });
    await refused(mergeContacts, { sources: ['h1'], target: 'h3' }, 'circular_lineage', 'lies below it');
    await refused(mergeContacts, { sources: ['c1'], target: 'h2' }, 'different_kind', '"c1"');
    documents.put({ _id: 'k1', type: 'contact', contact_type: 'ward' });
    documents.put({ _id: 'k2', type: 'contact', contact_type: 'block' });
    await refused(mergeContacts, { sources: ['k1'], target: 'k2' }, 'different_kind', '"k1"');
    await refused(mergeContacts, { sources: ['zz'], target: 'h2' }, 'missing', '"zz"');
    await refused(mergeContacts, { sources: ['h1'], target: 'zz' }, 'missing', '"zz"');
    await refused(mergeContacts, { sources: ['r1'], target: 'r2' }, 'not_a_contact', '"r');
  });

  it('a source below another one goes, too, and is not moved before', async () => {
    documents.put({ _id: 'h3', type: 'health_center', parent: under('h1', 'd1') });
    documents.put({ _id: 'p3', type: 'person', parent: under('h3', 'h1', 'd1') });
    const both = { sources: ['h1', 'h3'], target: 'h2' };
    expect(await ids(mergeContacts, both)).toMatchObject({
      'set-parent': ['n1', 'c1', 'p3', 'p1', 'p2'],
      delete: ['h1', 'h3'],
    });
    await documents.run(mergeContacts, both);
    expect(documents.get('p3')?.['parent']).toEqual(under('h2', 'd2'));
    expect(wrongLineages(documents.live)).toEqual([]);
  });

  it('deletes users of the sources when it is told to', async () => {
    documents.put(settings('amber', 'h1'));
    documents.put(settings('coral', 'c1'));
    expect(await ids(mergeContacts, merge)).not.toHaveProperty('delete-user');
    expect(await ids(mergeContacts, { ...merge, deleteUsers: true })).toMatchObject({
      'delete-user': ['org.couchdb.user:amber'],
    });
  });

  it('an id counts before a short code: what names another contact by its id stays, and nothing is left for a second run', async () => {
    documents.put({ _id: 'k1', type: 'person', patient_id: 'p2' });
    documents.put({ _id: 'k2', type: 'person', patient_id: 'k1', place_id: 'k2' });
    documents.put({ _id: 'r5', form: 'visit', fields: { patient_uuid: 'p2' } });
    documents.put({ _id: 'r6', form: 'visit', fields: { patient_id: '701' } });
    documents.put({ _id: 'r7', form: 'visit', fields: { patient_uuid: 'k1' } });
    documents.put({ _id: 'r8', form: 'visit', fields: { patient_uuid: 'k2' } });
    const request = { sources: ['k1', 'p1'], target: 'k2' };
    await documents.run(mergeContacts, request);
    expect(documents.get('r5')).toHaveProperty('fields.patient_uuid', 'p2');
    for (const id of ['r6', 'r7', 'r8']) expect(Object.values(documents.get(id)?.['fields'] ?? {})).toEqual(['k2']);
    expect(await documents.plan(mergeContacts, request)).toEqual([]);
  });

  it('of two with one short code, a report that names the other one by its id stays with that', async () => {
    documents.put({ _id: 'k1', type: 'person', patient_id: '701' });
    documents.put({ _id: 'r5', form: 'visit', fields: { patient_id: '701', patient_uuid: 'k1' } });
    documents.put({ _id: 'r6', form: 'visit', fields: { patient_id: '701', patient_uuid: 'p1' } });
    expect(await ids(mergeContacts, { sources: ['p1'], target: 'p2' })).toMatchObject({ update: ['r1', 'r6'] });
    expect(await ids(mergeContacts, { sources: ['p1'], target: 'k1' })).toMatchObject({ update: ['r6'] });
  });

  it('R4 a short code in a report that someone edits meanwhile is mended by that failure, without its guard', async () => {
    const parts = await documents.plan(mergeContacts, { sources: ['p1'], target: 'p2' });
    documents.put({ _id: 'r1', form: 'visit', fields: { patient_id: '701', note: 'new' } });
    expect(documents.apply(parts)).toContainEqual({ action: 'update', id: 'r1', is: 'guard_mismatch' });
    expect(await documents.plan(mergeContacts, { sources: ['p1'], target: 'p2' })).toEqual([]);
    const failed = parts.find(({ action }) => action === 'update')?.operations.find(({ id }) => id === 'r1');
    documents.apply([{ action: 'update', operations: [{ id: 'r1', patch: failed?.['patch'] }] }]);
    expect(documents.get('r1')?.['fields']).toEqual({ patient_id: '702', note: 'new' });
  });

  it.each([
    [{ sources: [], target: 'a' }],
    [{ sources: 'a', target: 'b' }],
    [{ sources: ['a'], target: 'b', deleteUsers: 1 }],
  ])('S9 does not take %j for a request', async (request) => {
    expect(await mergeContacts.request['~standard'].validate(request)).toHaveProperty('issues');
  });
});

describe('R6 delete-contact', () => {
  it('clears places, then deletes reports about them, then from the bottom up, the contact last', async () => {
    documents.put({ _id: 'r4', form: 'survey', fields: { place_id: '601' } });
    const parts = await documents.plan(deleteContact, { id: 'h1' });
    expect(parts.map(({ action }) => action)).toEqual(['set-contact', 'delete']);
    expect(parts[0]?.operations).toEqual([
      { id: 'd2', contact: null, current_contact: documents.get('d2')?.['contact'] },
    ]);
    expect(parts[1]?.operations.map(({ id }) => id)).toEqual(['r4', 'r1', 'p1', 'p2', 'n1', 'c1', 'h1']);
    documents.apply(parts);
    // What they have sent about others stays.
    expect(documents.live.map(({ _id }) => _id).sort()).toEqual(['d1', 'd2', 'h2', 'r2', 'r3']);
    expect(documents.get('d2')).not.toHaveProperty('contact');
    expect(await documents.plan(deleteContact, { id: 'h1' })).toEqual([]);
  });

  it('of a contact that is gone, or never was, changes nothing; what is left below it goes', async () => {
    expect(await documents.plan(deleteContact, { id: 'zz' })).toEqual([]);
    documents.remove('h1');
    documents.remove('c1');
    expect(await ids(deleteContact, { id: 'h1' })).toEqual({ 'set-contact': ['d2'], delete: ['r1', 'p1', 'p2', 'n1'] });
  });

  it('clears a place whose contact was deleted before', async () => {
    documents.remove('p1');
    documents.remove('h1');
    expect(await ids(deleteContact, { id: 'h1' })).toMatchObject({ 'set-contact': ['d2'] });
    documents = new Documents(town);
    documents.remove('p1');
    expect(await ids(deleteContact, { id: 'p1' })).toEqual({ 'set-contact': ['d2'] });
  });

  it('leaves a place alone that has got another contact meanwhile', async () => {
    const parts = await documents.plan(deleteContact, { id: 'c1' });
    documents.put({ _id: 'd2', contact: { _id: 'n1', parent: under('h1', 'd1') } });
    expect(documents.apply(parts)).toContainEqual({ action: 'set-contact', id: 'd2', is: 'guard_mismatch' });
    expect(documents.get('d2')?.['contact']).toMatchObject({ _id: 'n1' });
  });

  it('never deletes who was moved away, also where the move was given up before all lineages were right', async () => {
    documents.apply(await documents.plan(moveContact, { id: 'c1', parent: 'h2' }), (place) => place === 0);
    expect(documents.get('p1')?.['parent']).toEqual(under('c1', 'h1', 'd1'));
    expect(await ids(deleteContact, { id: 'h1' })).toEqual({ delete: ['n1', 'h1'] });
  });

  it('S8 deletes what lies too deep', async () => {
    for (let level = 1; level <= 70; level += 1) {
      documents.put({ _id: `x${String(level)}`, ...(level === 1 ? {} : { parent: { _id: `x${String(level - 1)}` } }) });
    }
    const parts = await documents.plan(deleteContact, { id: 'x1' });
    expect(parts[0]?.operations.map(({ id }) => id)).toEqual(
      Array.from({ length: 70 }, (_, at) => `x${String(70 - at)}`),
    );
  });

  it('S8 deletes what lies too deep also where a place elsewhere has its contact there', async () => {
    const levels = Array.from({ length: 70 }, (_, at) => `x${String(70 - at)}`);
    for (const [at, id] of levels.entries()) documents.put({ _id: id, parent: under(...levels.slice(at + 1)) });
    documents.put({ _id: 'd2', contact: { _id: 'x70', parent: under(...levels.slice(1)) } });
    expect(await ids(deleteContact, { id: 'x1' })).toEqual({ 'set-contact': ['d2'], delete: levels });
  });

  it('an id counts before a short code: reports that name another contact by its id stay', async () => {
    documents.put({ _id: 'p1', type: 'person', patient_id: 'h2', place_id: 'p2', parent: under('c1', 'h1', 'd1') });
    documents.put({ _id: 'r5', form: 'visit', fields: { patient_uuid: 'p2' } });
    expect(await ids(deleteContact, { id: 'p1' })).toEqual({ 'set-contact': ['d2'], delete: ['p1'] });
    expect(await ids(deleteContact, { id: 'c1' })).toMatchObject({ delete: ['r5', 'p1', 'p2', 'c1'] });
  });

  it('a second run finds nothing more where a report stands in a lineage and goes with the first one', async () => {
    documents.put({ _id: 'r5', form: 'visit', fields: { patient_uuid: 'p1' } });
    documents.put({ _id: 'k1', type: 'person', parent: under('r5', 'p1') });
    documents.put({ _id: 'k2', type: 'person', parent: under('k1', 'r5', 'p1') });
    await documents.run(deleteContact, { id: 'p1' });
    expect(['k1', 'k2', 'r5', 'p1'].map((id) => documents.get(id))).toEqual(Array(4).fill(undefined));
    expect(await documents.plan(deleteContact, { id: 'p1' })).toEqual([]);
  });

  it('of two with one short code, a report that names the other one by its id stays', async () => {
    documents.put({ _id: 'k1', type: 'person', patient_id: '701' });
    documents.put({ _id: 'r5', form: 'visit', fields: { patient_id: '701', patient_uuid: 'k1' } });
    documents.put({ _id: 'r6', form: 'visit', fields: { patient_id: '701', patient_uuid: 'p1' } });
    documents.put({ _id: 'r7', form: 'visit', patient_id: '701', fields: { patient_uuid: 'k1', place_id: '601' } });
    const deleted = async (id: string): Promise<unknown> =>
      [...((await ids(deleteContact, { id }))['delete'] ?? [])].sort();
    expect(await deleted('p1')).toEqual(['p1', 'r1', 'r6']);
    expect(await deleted('c1')).toEqual(['c1', 'p1', 'p2', 'r1', 'r6', 'r7']);
  });

  it('deletes the users whose places or whose contact go, with the places that it saw, and nobody else', async () => {
    documents.put(settings('amber', 'h1', 'n1'));
    documents.put(settings('coral', ['c1', 'h1']));
    documents.put(settings('flint', ['h1', 'h2']));
    documents.put(settings('ivory', 'h2', 'p1'));
    documents.put(settings('olive', undefined, 'p2'));
    documents.put(settings('slate', 'h1', undefined, { inactive: true }));
    expect(await ids(deleteContact, { id: 'h1' })).not.toHaveProperty('delete-user');
    const parts = await documents.plan(deleteContact, { id: 'h1', deleteUsers: true });
    expect(parts.map(({ action }) => action)).toEqual(['set-contact', 'delete', 'delete-user']);
    expect(parts[2]?.operations).toEqual([
      { id: 'org.couchdb.user:amber', facilities: ['h1'] },
      { id: 'org.couchdb.user:coral', facilities: ['c1', 'h1'] },
      { id: 'org.couchdb.user:ivory', facilities: ['h2'] },
      { id: 'org.couchdb.user:olive', facilities: null },
    ]);
  });

  it('refuses a report, before anything is written', async () => {
    await refused(deleteContact, { id: 'r1' }, 'not_a_contact', '"r1"');
  });
});
