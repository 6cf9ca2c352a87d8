import type { Doc, DocumentAction, Json } from '@afield/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { setContact } from './set-contact.js';
import { setParent } from './set-parent.js';

const area: Json = { _id: 'a1', parent: { _id: 'd1' } };
const household: Json = { _id: 'h1', parent: area };
const person: Doc = { _id: 'p1', name: 'Person Alder', parent: household };

function levels(count: number): Json {
  let lineage: Json = { _id: `lv${String(count)}` };
  for (let level = count - 1; level > 0; level -= 1) lineage = { _id: `lv${String(level)}`, parent: lineage };
  return lineage;
}

function read<Content>(action: DocumentAction<Content>, input: unknown): Content {
  const result = action.operation['~standard'].validate(input);
  if (result instanceof Promise) throw new Error('the schema must answer at once');
  if (result.issues !== undefined) throw new Error(result.issues[0]?.message ?? 'refused');
  return result.value;
}

describe('R6 set-parent', () => {
  it('is applied by value: key order does not count, a level more or less does', () => {
    expect(setParent.isApplied(person, { parent: { parent: area, _id: 'h1' } })).toBe(true);
    expect(setParent.isApplied(person, { parent: { _id: 'h1' } })).toBe(false);
    expect(setParent.isApplied(person, { parent: { _id: 'h1', parent: { ...area, more: 1 } } })).toBe(false);
  });

  it.each([
    [{ _id: 'p1' }, {}],
    [{ _id: 'p1', parent: null }, {}],
    [{ _id: 'p1' }, { parent: null }],
    [{ _id: 'p1', parent: undefined }, { parent: null }],
  ])('takes null, undefined and absent all as none (%j, %j)', (doc, operation) => {
    expect(setParent.isApplied(doc, operation)).toBe(true);
  });

  it('removes the field when there is to be no parent, and keeps all others', () => {
    const changed = setParent.apply({ ...person, _attachments: { 'photo.png': { stub: true } } }, { parent: null });
    expect(changed).toEqual({ _id: 'p1', name: 'Person Alder', _attachments: { 'photo.png': { stub: true } } });
    expect(Object.keys(changed)).not.toContain('parent');
  });

  it.each([
    ['the id', { current_parent_id: 'h1' }, undefined],
    ['another id', { current_parent_id: 'h2' }, 'guard_mismatch'],
    ['all of it', { current_parent: household }, undefined],
    ['all of it, but a level', { current_parent: { _id: 'h1' } }, 'guard_mismatch'],
    ['the id, and something else as a whole', { current_parent_id: 'h1', current_parent: null }, 'guard_mismatch'],
    ['none, by id', { current_parent_id: null }, 'guard_mismatch'],
    ['none, as a whole', { current_parent: null }, 'guard_mismatch'],
    ['nothing', {}, undefined],
  ])('guards by %s', (_what, guard, code) => {
    expect(setParent.guard?.(person, { parent: { _id: 'h3' }, ...guard })?.code).toBe(code);
  });

  it('takes a guard of null as: there must be none', () => {
    const lonely: Doc = { _id: 'p1', parent: null };
    expect(setParent.guard?.(lonely, { parent: area, current_parent: null, current_parent_id: null })).toBeUndefined();
    expect(setParent.guard?.(lonely, { parent: area, current_parent_id: 'a1' })?.code).toBe('guard_mismatch');
  });

  it('does not take a member of every object for an own id', () => {
    const odd: Doc = { _id: 'p1', parent: { constructor: 'x', toString: 'y' } };
    expect(setParent.guard?.(odd, { parent: area, current_parent_id: 'x' })?.code).toBe('guard_mismatch');
    expect(setParent.isApplied(odd, { parent: { constructor: 'x', toString: 'y' } })).toBe(true);
  });

  it('refuses an unknown field and what is no JSON', () => {
    expect(() => read(setParent, { parent: area, curent_parent_id: 'h1' })).toThrow();
    expect(() => read(setParent, { parent: new Date(0) })).toThrow();
    expect(() => read(setParent, { current_parent_id: 5 })).toThrow();
    expect(read(setParent, { parent: area, current_parent_id: null })).toEqual({
      parent: area,
      current_parent_id: null,
    });
  });

  it('keeps __proto__ in the lineage as a plain key', () => {
    const parent = JSON.parse('{"_id":"h1","__proto__":{"polluted":1}}') as Json;
    const changed = setParent.apply(person, read(setParent, { parent }));
    expect(JSON.stringify(changed['parent'])).toBe('{"_id":"h1","__proto__":{"polluted":1}}');
    expect({}).not.toHaveProperty('polluted');
  });
});

describe('R6 set-contact', () => {
  const place: Doc = { _id: 'h1', parent: area, contact: { _id: 'p1', parent: household } };

  it('sets, compares and removes the contact', () => {
    const contact: Json = { _id: 'p2', parent: household };
    expect(setContact.isApplied(place, { contact })).toBe(false);
    expect(setContact.isApplied(setContact.apply(place, { contact }), { contact })).toBe(true);
    expect(setContact.apply(place, {})).toEqual({ _id: 'h1', parent: area });
    expect(setContact.isApplied({ _id: 'h1' }, {})).toBe(true);
  });

  it('guards by id, by all of it, and by none', () => {
    expect(setContact.guard?.(place, { contact: null, current_contact_id: 'p1' })).toBeUndefined();
    expect(setContact.guard?.(place, { contact: null, current_contact_id: 'p2' })?.code).toBe('guard_mismatch');
    expect(setContact.guard?.(place, { contact: null, current_contact: { _id: 'p1' } })?.code).toBe('guard_mismatch');
    expect(setContact.guard?.(place, { contact: null, current_contact: null })?.code).toBe('guard_mismatch');
  });

  it('S8 lets a contact live in the place itself, but not in itself', () => {
    expect(setContact.guard?.(place, { contact: { _id: 'p2', parent: household } })).toBeUndefined();
    const circle: Json = { _id: 'p2', parent: { _id: 'h1', parent: { _id: 'p2' } } };
    expect(setContact.guard?.(place, { contact: circle })?.code).toBe('circular_lineage');
    expect(setContact.guard?.(place, { contact: { _id: 'p2', parent: levels(51) } })?.code).toBe('too_deep');
    expect(setContact.guard?.(place, { contact: { _id: 'p2', parent: levels(50) } })).toBeUndefined();
  });
});

describe('S8 lineages', () => {
  it('may have 50 levels and no more', () => {
    expect(setParent.guard?.(person, { parent: levels(50) })).toBeUndefined();
    expect(setParent.guard?.(person, { parent: levels(51) })?.code).toBe('too_deep');
  });

  it('are read without recursion', () => {
    const deep = levels(100_000);
    expect(setParent.guard?.(person, read(setParent, { parent: deep }))?.code).toBe('too_deep');
  });

  it('may not come back to the document or to themselves', () => {
    expect(setParent.guard?.(person, { parent: { _id: 'h2', parent: { _id: 'p1' } } })?.code).toBe('circular_lineage');
    expect(setParent.guard?.(person, { parent: { _id: 'p1' } })?.code).toBe('circular_lineage');
    const twice: Json = { _id: 'h2', parent: { _id: 'a1', parent: { _id: 'h2' } } };
    expect(setParent.guard?.(person, { parent: twice })?.code).toBe('circular_lineage');
  });

  it('are refused before the guard is looked at', () => {
    expect(setParent.guard?.(person, { parent: { _id: 'p1' }, current_parent_id: 'h9' })?.code).toBe(
      'circular_lineage',
    );
  });
});

describe('laws', () => {
  const lineage = fc.option(
    fc.letrec((tie) => ({
      level: fc.record(
        { _id: fc.constantFrom('d1', 'a1', 'h1', 'toString'), parent: tie('level') as fc.Arbitrary<Json> },
        { requiredKeys: ['_id'] },
      ),
    })).level,
  ) as fc.Arbitrary<Json>;
  const doc = fc
    .tuple(fc.dictionary(fc.string(), fc.jsonValue()), lineage, lineage)
    .map(([fields, parent, contact]) => ({
      ...fields,
      _id: 'p1',
      _attachments: { 'photo.png': { stub: true } },
      parent,
      contact,
    }));

  it.each([
    ['set-parent', setParent as DocumentAction, 'parent'],
    ['set-contact', setContact as DocumentAction, 'contact'],
  ])(
    '%s: after apply it is applied, nothing else changed, and neither document nor operation was touched',
    (_, action, field) => {
      fc.assert(
        fc.property(doc, lineage, lineage, (before, wanted, current) => {
          const operation = { [field]: wanted, [`current_${field}`]: current };
          const asItWas = JSON.stringify([before, operation]);
          action.guard?.(before, operation);
          const after = action.apply(before, operation);
          expect(action.isApplied(after, operation)).toBe(true);
          expect(JSON.stringify([before, operation])).toBe(asItWas);
          expect({ ...after, [field]: undefined }).toEqual({ ...before, [field]: undefined });
        }),
      );
    },
  );
});
