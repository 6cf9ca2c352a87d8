import { describe, expect, it } from 'vitest';
import { updateAction } from './update.js';

function wrongIn(content: unknown): string | undefined {
  const result = updateAction.operation['~standard'].validate(content);
  if (result instanceof Promise) throw new TypeError('a schema that waits');
  const [issue] = result.issues ?? [];
  return issue && `${(issue.path ?? []).join('.')}: ${issue.message}`;
}

/** The example table of RFC 7396 (appendix A): what is there, the patch, what results. */
const examples: readonly (readonly [unknown, unknown, unknown])[] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, undefined],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

describe('update', () => {
  // A patch of a whole document is always an object; one level down all lines of the table can be met.
  it.each(examples)('R6 merges as RFC 7396 says: %j with %j', (before, patch, after) => {
    const doc = { _id: 'p1', _rev: '1-a', kept: [1], value: before };
    const result = updateAction.apply(doc, { patch: { value: patch } });
    expect(result).toStrictEqual({
      _id: 'p1',
      _rev: '1-a',
      kept: [1],
      ...(after === undefined ? {} : { value: after }),
    });
    expect(doc).toStrictEqual({ _id: 'p1', _rev: '1-a', kept: [1], value: before });
    expect(updateAction.isApplied(result, { patch: { value: patch } })).toBe(true);
  });

  it('R6 is applied already when the patch would change nothing', () => {
    const doc = { _id: 'p1', a: { b: 1, c: [1, { d: 2 }] }, constructor: 'x' };
    const isApplied = (patch: Record<string, unknown>): boolean => updateAction.isApplied(doc, { patch });
    expect(isApplied({})).toBe(true);
    expect(isApplied({ a: { b: 1 }, gone: null })).toBe(true);
    expect(isApplied({ a: { c: [1, { d: 2 }] }, constructor: 'x' })).toBe(true);
    expect(isApplied({ toString: null, valueOf: null })).toBe(true);
    expect(isApplied({ a: { c: [1, { d: 3 }] } })).toBe(false);
    expect(isApplied({ a: null })).toBe(false);
    // An empty object is put where there is none.
    expect(isApplied({ gone: { deeper: null } })).toBe(false);
  });

  it('R3 a deleted revision is never as the patch wants it', () => {
    expect(updateAction.isApplied({ _id: 'p1', _deleted: true }, { patch: { a: null } })).toBe(false);
  });

  it('S8 names that every object has are plain fields', () => {
    const patch = { constructor: { name: 'x' }, toString: { a: null }, hasOwnProperty: 1 };
    const result = JSON.stringify(updateAction.apply({ _id: 'p1' }, { patch }));
    expect(result).toBe('{"_id":"p1","constructor":{"name":"x"},"toString":{},"hasOwnProperty":1}');
  });

  it.each([
    ['equal, in another key order', { parent: { parent: { _id: 'd' }, _id: 'c' } }, true],
    ['null, and there is none', { phone: null }, true],
    ['null, and there is a null', { empty: null }, true],
    ['null, and a name that every object has', { toString: null }, true],
    ['null, but there is one', { name: null }, false],
    ['another value', { name: 'Person 2' }, false],
    ['a value, but there is none', { phone: '1' }, false],
    ['one of two is another', { name: 'Person 1', empty: 0 }, false],
  ])('R6 the guard: %s', (_what, expected, fits) => {
    const doc = { _id: 'p1', name: 'Person 1', empty: null, parent: { _id: 'c', parent: { _id: 'd' } } };
    const failure = updateAction.guard?.(doc, { patch: { a: 1 }, expected });
    expect(failure?.code).toBe(fits ? undefined : 'guard_mismatch');
  });

  it('R6 the guard names the field, not what is in it', () => {
    const failure = updateAction.guard?.({ _id: 'p1', name: 'secret' }, { patch: {}, expected: { name: 'other' } });
    expect(failure?.reason).toBe('The field "name" is not as the operation expects it.');
  });

  it.each([
    [{ patch: { a: 1 } }, undefined],
    [{ patch: { parent: { _id: 'c1' }, constructor: null }, expected: { parent: null, n: [1] } }, undefined],
    [{}, 'patch: '],
    [{ patch: null }, 'patch: '],
    [{ patch: [1] }, 'patch: '],
    [{ patch: { _rev: null } }, 'patch._rev: cannot be set'],
    [{ patch: { _deleted: true } }, 'patch._deleted: cannot be set'],
    [{ patch: { a: JSON.parse('{"__proto__":{}}') as unknown } }, 'patch.a.__proto__: cannot be a field'],
    [{ patch: {}, expected: JSON.parse('{"__proto__":1}') as unknown }, 'expected.__proto__: cannot be a field'],
    [{ patch: {}, expected: { _rev: '1-a' } }, 'expected._rev: cannot be set'],
    [{ patch: {}, expected: { name: undefined } }, 'expected.name: must not be undefined'],
    [{ patch: {}, expected: null }, 'expected: '],
    [{ a: 1 }, 'patch: '],
  ])('S9 what cannot be meant is refused, and named: %#', (content, wrong) => {
    if (wrong === undefined) expect(wrongIn(content)).toBeUndefined();
    else expect(wrongIn(content)).toContain(wrong);
  });
});
