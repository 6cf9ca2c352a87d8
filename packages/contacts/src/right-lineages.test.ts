import { PlanRefusedError, type Doc } from '@afield/client';
import { describe, expect, it } from 'vitest';
import { noChange, RightLineages, type LineageChange } from './right-lineages.js';
import { seenContact } from './seen-contacts.js';

const docs: Doc[] = [
  { _id: 'd1' },
  { _id: 'd2' },
  { _id: 'h1', parent: { _id: 'd1', name: 'District' } },
  { _id: 'c1', parent: { _id: 'h1', name: 'Centre', parent: { _id: 'd1', name: 'District' } } },
  { _id: 'p1', parent: { _id: 'c1', parent: { _id: 'h1', parent: { _id: 'd1' } } } },
];
const seen = new Map(docs.map((doc) => [doc._id, seenContact(doc)] as const));
const move = (id: string, parent: string | null): LineageChange => ({ ...noChange, parents: new Map([[id, parent]]) });
const under = (change: LineageChange): RightLineages => new RightLineages(seen, change);
const contact = (doc: object): ReturnType<typeof seenContact> => seenContact({ _id: 'x', ...doc });
const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof PlanRefusedError) return error.code;
  }
  return 'not refused';
};

describe('R6 lineages after a change', () => {
  it('are right already where nothing changes, whatever else is written in them', () => {
    for (const one of seen.values()) expect(under(noChange).setParent(one)).toBeUndefined();
    expect(under(noChange).setParent(contact({ parent: null }))).toBeUndefined();
    expect(under(noChange).setParent(contact({ parent: { _id: 'd1', parent: null } }))).toBeUndefined();
  });

  it('follow the new parent, keep what else is written, and have what was seen as their guard', () => {
    const right = under(move('h1', 'd2'));
    const [h1, c1] = [seen.get('h1'), seen.get('c1')].map((one) => one && right.setParent(one));
    expect(h1).toEqual({
      depth: 1,
      operation: { id: 'h1', parent: { _id: 'd2' }, current_parent: { _id: 'd1', name: 'District' } },
    });
    expect(c1?.operation).toMatchObject({ parent: { _id: 'h1', name: 'Centre', parent: { _id: 'd2' } } });
    const top = under(move('h1', null));
    expect(seen.get('h1') && top.setParent(seen.get('h1') ?? contact({}))?.operation).toMatchObject({ parent: null });
    expect(under(move('d2', 'h1')).setParent(contact({ _id: 'd2' }))?.operation).toMatchObject({
      current_parent: null,
    });
  });

  it('take of a parent that is not here what the lineage says, and of all above it what the documents say', () => {
    const away = contact({ parent: { _id: 'gone', parent: { _id: 'h1', parent: { _id: 'd1' } } } });
    expect(under(noChange).setParent(away)).toBeUndefined();
    expect(under(move('h1', 'd2')).above(away)).toEqual(['gone', 'h1', 'd2']);
  });

  it('of contacts: places and reports get the lineage of whom they name, who keeps all else', () => {
    const report: Doc = { _id: 'r1', contact: { _id: 'p1', phone: '1', parent: { _id: 'c1' } } };
    expect(under(move('h1', 'd2')).setContact(report)).toEqual({
      id: 'r1',
      contact: { _id: 'p1', phone: '1', parent: { _id: 'c1', parent: { _id: 'h1', parent: { _id: 'd2' } } } },
      current_contact: report['contact'],
    });
    for (const value of [undefined, null, 'p1', {}, { _id: '' }]) {
      expect(under(noChange).setContact({ _id: 'r1', contact: value })).toBeUndefined();
    }
  });

  it('one contact in the place of another comes without what was written of that one', () => {
    const merged: LineageChange = { ...noChange, replaced: new Map([['c1', 'd2']]) };
    expect(
      under(merged).setParent(contact({ parent: { _id: 'c1', name: 'Clinic', parent: { _id: 'h1' } } }))?.operation,
    ).toEqual({ id: 'x', parent: { _id: 'd2' }, current_parent: { _id: 'c1', name: 'Clinic', parent: { _id: 'h1' } } });
  });

  it('S8 are refused where they are circles, in a plan and in the data', () => {
    expect(codeOf(() => under(move('d1', 'p1')).above(contact({ _id: 'd1' })))).toBe('circular_lineage');
    expect(codeOf(() => under(noChange).above(contact({ parent: { _id: 'g1', parent: { _id: 'g1' } } })))).toBe(
      'circular_lineage',
    );
    expect(codeOf(() => under(noChange).setContact({ _id: 'r', contact: { _id: 'a', parent: { _id: 'a' } } }))).toBe(
      'circular_lineage',
    );
  });

  it('S8 have 50 levels and no more, and a contact as many', () => {
    const levels = (count: number): object | undefined =>
      count === 0 ? undefined : { _id: `l${String(count)}`, parent: levels(count - 1) };
    expect(under(noChange).above(contact({ parent: levels(50) }))).toHaveLength(50);
    expect(codeOf(() => under(noChange).above(contact({ parent: levels(51) })))).toBe('too_deep');
    expect(codeOf(() => under(noChange).setContact({ _id: 'r', contact: { _id: 'a', parent: levels(50) } }))).toBe(
      'not refused',
    );
    expect(codeOf(() => under(noChange).setContact({ _id: 'r', contact: { _id: 'a', parent: levels(51) } }))).toBe(
      'too_deep',
    );
  });
});
