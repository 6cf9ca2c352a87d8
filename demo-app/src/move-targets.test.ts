import { describe, expect, it } from 'vitest';
import type { Entry, Places } from './catalogue.js';
import { moveTargets, noTargets } from './move-targets.js';

function places(...rows: readonly (readonly [id: string, type: string, parentId?: string])[]): Places {
  const all = rows.map(([id, type, parentId]): Entry => {
    return { id, rev: '1-a', type, form: undefined, name: id, parentId, contact: [] };
  });
  return {
    get: (id) => all.find((entry) => entry.id === id),
    childrenOf: (id) => all.filter((entry) => entry.parentId === id),
    entries: () => all,
  };
}

const world = places(
  ['d1', 'district_hospital'],
  ['d2', 'district_hospital'],
  ['h1', 'health_center', 'd1'],
  ['h2', 'health_center', 'd2'],
  ['c1', 'clinic', 'h1'],
  ['c2', 'clinic', 'h2'],
  ['p1', 'person', 'c1'],
  ['p2', 'person', 'c2'],
  ['post', 'post', 'c1'],
);

function idsFor(...chosen: string[]): string[] {
  return moveTargets(world, chosen).map(({ id }) => id);
}

describe('where records can move', () => {
  it('offers the level above, and not the place where they are', () => {
    expect(idsFor('h1')).toEqual(['d2']);
    expect(idsFor('c1')).toEqual(['h2']);
    expect(idsFor('p1')).toEqual(['h1', 'h2', 'c2']);
  });

  it('offers neither what is chosen nor what lies in it', () => {
    expect(idsFor('h1', 'p1')).toEqual(['d2']);
    expect(idsFor('p2', 'p1')).toEqual(['h1', 'h2', 'c1', 'c2']);
  });

  it('puts a type that it does not know where others of that type lie', () => {
    expect(idsFor('post')).toEqual(['c2']);
  });

  it('says why there is nothing to offer', () => {
    expect(idsFor('d1')).toEqual([]);
    expect(noTargets(world, ['d1'])).toContain('A district');
    expect(idsFor('h1', 'c2')).toEqual([]);
    expect(noTargets(world, ['h1', 'c2'])).toContain('one kind');
  });
});
