import type { Doc } from '@afield/client';
import { describe, expect, it } from 'vitest';
import { caseIndex } from './index-keys.js';

const keys = (name: string, doc: object): unknown => caseIndex({ name }).keys(doc as Doc);

describe('the index that a case names', () => {
  it.each([
    ['by-parent', { parent: { _id: 'h1', parent: { _id: 'a1' } } }, ['h1']],
    ['by-parent', { parent: 'h1' }, ['h1']],
    ['by-parent', {}, []],
    ['by-parent', { parent: null }, []],
    ['by-type', { type: 'person' }, ['person']],
    ['by_patient_id', { fields: { patient_id: '81' } }, ['81']],
    ['by-patient-id', { patient_id: 81 }, [81]],
    ['by-reported-date', { reported_date: 17 }, [17]],
    ['by-facility-id', { facility_id: ['f1', { _id: 'f2' }] }, ['f1', 'f2']],
    ['by-muted', { muted: true }, ['true']],
    ['by-id', { _id: 'p1' }, ['p1']],
    ['by-ancestor', { parent: { _id: 'h1', parent: { _id: 'a1' } } }, ['h1', 'a1']],
    ['by-type-and-parent', { type: 'person', parent: { _id: 'h1' } }, [['person', 'h1']]],
    ['by-type-and-tags', { type: 'note', tags: ['a', 'b'] }, [['note', 'a'], ['note', 'b']]], // prettier-ignore
    ['by-type-and-parent', { type: 'person' }, []],
    ['phone', { phone: '+1' }, ['+1']],
  ])('%s of %j is %j', (name, doc, expected) => {
    expect(keys(name, doc)).toEqual(expected);
  });

  it.each([
    ['by-parent', { parent: {} }],
    ['by-parent', { parent: { _id: {} } }],
    ['by-type', { type: [['person']] }],
    ['by-ancestor', { parent: { _id: 'h1', parent: {} } }],
    ['by-parent-throws-on-p-1', { _id: 'p-1', parent: { _id: 'h1' } }],
  ])('%s throws for %j', (name, doc) => {
    expect(() => keys(name, doc)).toThrow(TypeError);
  });

  it('throws only for the document that it names, and reads as many at once as it says', () => {
    expect(keys('by-parent-throws-on-p1', { _id: 'p2', parent: { _id: 'h1' } })).toEqual(['h1']);
    expect(caseIndex({ name: 'by-parent', batch_size: 2 })).toMatchObject({ name: 'by-parent', batchSize: 2 });
    expect(caseIndex({ name: 'by-parent', batch_size: 5000 }).batchSize).toBe(100);
    expect(caseIndex({ name: 'by-parent', checkpoint_every: 5 })).not.toHaveProperty('batchSize');
  });
});
