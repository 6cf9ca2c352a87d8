import { describe, expect, it } from 'vitest';
import { wrongLineages } from './lineage-check.js';

const area = { _id: 'a1' };
const clinic = { _id: 'c1', parent: { _id: 'a1' } };
const person = { _id: 'p1', parent: { _id: 'c1', parent: { _id: 'a1' } } };
const report = { _id: 'r1', form: 'visit', contact: person };

describe('wrongLineages', () => {
  it('finds nothing where each lineage says what the documents say', () => {
    expect(
      wrongLineages([area, { ...clinic, contact: person }, person, report, { _id: 'x', parent: '', contact: 5 }]),
    ).toEqual([]);
  });

  it('finds a lineage that has stayed behind, a level too few, and one too many', () => {
    const moved = { _id: 'c1', parent: { _id: 'a2' } };
    expect(wrongLineages([area, moved, person, { ...report, contact: { _id: 'p1' } }])).toEqual([
      { id: 'p1', field: 'parent', is: ['c1', 'a1'], should: ['c1', 'a2'] },
      { id: 'r1', field: 'contact', is: ['p1'], should: ['p1', 'c1', 'a2'] },
    ]);
    const top = { _id: 'a1', parent: null };
    expect(wrongLineages([top, { _id: 'c1', parent: { _id: 'a1', parent: { _id: 'd1' } } }])).toEqual([
      { id: 'c1', field: 'parent', is: ['a1', 'd1'], should: ['a1'] },
    ]);
  });

  it('takes of a parent that is not there what the lineage says, and of whoever is above what the documents say', () => {
    expect(wrongLineages([person])).toEqual([]);
    const moved = { _id: 'a1', parent: { _id: 'd1' } };
    expect(wrongLineages([moved, person])).toMatchObject([{ id: 'p1', should: ['c1', 'a1', 'd1'] }]);
    expect(wrongLineages([{ ...area, _deleted: true }, person])).toEqual([]);
  });

  it('ends where parents go round in a circle', () => {
    const circle = [
      { _id: 'a1', parent: { _id: 'c1' } },
      { _id: 'c1', parent: { _id: 'a1' } },
    ];
    expect(wrongLineages(circle)).toEqual([
      { id: 'a1', field: 'parent', is: ['c1'], should: ['c1', 'a1'] },
      { id: 'c1', field: 'parent', is: ['a1'], should: ['a1', 'c1'] },
    ]);
  });
});
