import type { Doc } from '@afield/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contactsIndex } from './contacts-index.js';

const lineage = { _id: 'c1', parent: { _id: 'h1', parent: { _id: 'd1' } } };
const keys = (doc: object): unknown => contactsIndex.keys(doc as Doc);

describe('B5 the index of contacts', () => {
  it('finds a contact by its parent and by all above it, and a place by its contact', () => {
    expect(keys({ _id: 'p1', type: 'person', parent: lineage })).toEqual([
      ['child', 'c1'],
      ['below', 'c1'],
      ['below', 'h1'],
      ['below', 'd1'],
    ]);
    expect(keys({ _id: 'h1', contact: { _id: 'p1', parent: { _id: 'c1', parent: { _id: 'h1' } } } })).toEqual([
      ['contact', 'p1'],
      ['contact-below', 'c1'],
      ['contact-below', 'h1'],
    ]);
  });

  it('finds a report by whom it is about, each once, at its top and in its fields, and by who has sent it', () => {
    const fields = { patient_id: 12345, patient_uuid: 'p1', place_id: 'c1', place_uuid: '' };
    const report = {
      _id: 'r1',
      form: 'visit',
      patient_id: '12345',
      fields,
      contact: { _id: 'p2', parent: { _id: 'c1' } },
    };
    expect(keys(report)).toEqual([
      ['about', '12345'],
      ['about', 'p1'],
      ['about', 'c1'],
      ['report-by', 'p2'],
      ['report-by-below', 'c1'],
    ]);
    expect(keys({ _id: 'r2', type: 'data_record', place_id: 'c1', parent: lineage })).toEqual([['about', 'c1']]);
  });

  it('finds a user by the contact and by each place, each once', () => {
    const settings = { _id: 'org.couchdb.user:amber', type: 'user-settings', contact_id: 'p1' };
    expect(keys({ ...settings, facility_id: ['c1', 'c2', 'c1'] })).toEqual([
      ['user', 'c1'],
      ['user', 'c2'],
      ['user', 'p1'],
    ]);
    expect(keys({ ...settings, facility_id: 'c1', contact_id: 5, parent: lineage })).toEqual([
      ['user', 'c1'],
      ['user', '5'],
    ]);
  });

  it('knows short codes of contacts as theirs, not as what they are about', () => {
    expect(keys({ _id: 'p1', type: 'person', patient_id: '12345' })).toEqual([]);
  });

  it('walks lineages of any depth, sixty levels of them, and circles of ids', () => {
    let deep: object = { _id: 'top' };
    for (let level = 0; level < 100_000; level += 1) deep = { _id: `l${String(level)}`, parent: deep };
    expect(keys({ _id: 'p1', parent: deep })).toHaveLength(61);
    const circle = { _id: 'a', parent: { _id: 'b', parent: { _id: 'a' } } };
    expect(keys({ _id: 'p1', parent: circle })).toEqual([
      ['child', 'a'],
      ['below', 'a'],
      ['below', 'b'],
    ]);
  });

  it('takes any JSON for a document, and answers with keys alone', () => {
    const names = [
      'parent',
      'contact',
      'fields',
      'patient_id',
      'place_id',
      'form',
      'type',
      'facility_id',
      'contact_id',
    ];
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom({ _id: 5 }, { _id: '' }, { _id: 'a', parent: 'b' }, [{ _id: 'a' }]),
    );
    const fields = fc.dictionary(fc.constantFrom(...names), value);
    const id = fc.constantFrom('p1', 'org.couchdb.user:amber', 'constructor', '');
    fc.assert(
      fc.property(id, fields, (_id, doc) => {
        const found = keys({ ...doc, _id });
        expect(found).toBeInstanceOf(Array);
        for (const key of found as unknown[]) {
          expect(key).toEqual([expect.stringMatching(/^[a-z-]+$/), expect.stringMatching(/./)]);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
