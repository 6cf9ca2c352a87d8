import { describe, expect, it } from 'vitest';
import type { Entry, Places } from './catalogue.js';
import { MoveError, planMove } from './plan-move.js';

function places(...entries: Partial<Entry>[]): Places {
  const all = entries.map((entry): Entry => ({
    id: '',
    rev: '1-a',
    type: 'clinic',
    form: undefined,
    name: entry.id ?? '',
    parentId: undefined,
    contact: [],
    ...entry,
  }));
  return {
    get: (id) => all.find((entry) => entry.id === id),
    childrenOf: (id) => all.filter((entry) => entry.parentId === id && entry.type !== 'data_record'),
    entries: () => all,
  };
}

const world = places(
  { id: 'd1' },
  { id: 'd2' },
  { id: 'h', parentId: 'd1', contact: ['p', 'c', 'h', 'd1'] },
  { id: 'c', parentId: 'h' },
  { id: 'p', type: 'person', parentId: 'c' },
  { id: 'other', parentId: 'd1' },
  { id: 'r1', type: 'data_record', contact: ['p', 'c', 'h', 'd1'] },
  { id: 'r2', type: 'data_record', contact: ['left', 'c', 'h', 'd1'] },
  { id: 'r3', type: 'data_record', contact: ['q', 'other', 'd1'] },
);

describe('planning a move', () => {
  it('changes the place first, then what lies in it, with the parent that each expects', () => {
    expect(planMove(world, ['h'], 'd2')[0]).toEqual({
      action: 'set-parent',
      operations: [
        { id: 'h', parent: { _id: 'd2' }, current_parent_id: 'd1' },
        { id: 'c', parent: { _id: 'h', parent: { _id: 'd2' } }, current_parent_id: 'h' },
        { id: 'p', parent: { _id: 'c', parent: { _id: 'h', parent: { _id: 'd2' } } }, current_parent_id: 'c' },
      ],
    });
  });

  it('brings reports and places along whose contact moves, also a contact that is not on the device', () => {
    const above = { _id: 'c', parent: { _id: 'h', parent: { _id: 'd2' } } };
    expect(planMove(world, ['h'], 'd2')[1]).toEqual({
      action: 'set-contact',
      operations: [
        { id: 'h', contact: { _id: 'p', parent: above }, current_contact_id: 'p' },
        { id: 'r1', contact: { _id: 'p', parent: above }, current_contact_id: 'p' },
        { id: 'r2', contact: { _id: 'left', parent: above }, current_contact_id: 'left' },
      ],
    });
  });

  it('moves what lies in a chosen place once, with that place', () => {
    expect(planMove(world, ['p', 'h'], 'd2')[0]?.operations).toHaveLength(3);
  });

  it('refuses a place that is moved into itself, or to where it is', () => {
    expect(() => planMove(world, ['h'], 'c')).toThrow(MoveError);
    expect(() => planMove(world, ['h'], 'h')).toThrow(MoveError);
    expect(() => planMove(world, ['h'], 'd1')).toThrow(/already in/);
  });
});
