import { describe, expect, it } from 'vitest';
import { createAction } from './create.js';

const doc = { _id: 'p1', _rev: '3-c', type: 'person', tags: ['a', 'b'], parent: { _id: 'c1', parent: { _id: 'd1' } } };
const fields = { parent: { parent: { _id: 'd1' }, _id: 'c1' }, tags: ['a', 'b'], type: 'person' };

/** Field and message of the first thing that is wrong; undefined when nothing is. */
function wrongIn(content: unknown): string | undefined {
  const result = createAction.operation['~standard'].validate(content);
  if (result instanceof Promise) throw new TypeError('a schema that waits');
  const [issue] = result.issues ?? [];
  return issue && `${(issue.path ?? []).join('.')}: ${issue.message}`;
}

describe('create', () => {
  it.each([
    ['the same, in another order', doc, true],
    [
      'the same, and someone has attached a file',
      { ...doc, _attachments: { n: { stub: true, digest: 'md5-x' } } },
      true,
    ],
    ['another value', { ...doc, type: 'clinic' }, false],
    ['a value in another order of a list', { ...doc, tags: ['b', 'a'] }, false],
    ['a field more', { ...doc, note: null }, false],
    ['a field less', { _id: 'p1', type: 'person' }, false],
    ['deleted', { _id: 'p1', _rev: '4-d', _deleted: true }, false],
  ])('O5 a document is as wanted when all fields are: %s', (_what, found, same) => {
    expect(createAction.isApplied(found, { doc: fields })).toBe(same);
  });

  it('R3 a deleted revision is never the document that was created, also when that had no fields', () => {
    expect(createAction.isApplied({ _id: 'p1', _deleted: true }, { doc: {} })).toBe(false);
    expect(createAction.isApplied({ _id: 'p1' }, { doc: {} })).toBe(true);
  });

  it('O5 other content is refused, unless the operation names the revision that it replaces', () => {
    const refused = { code: 'conflicting_content', reason: expect.stringContaining('Compare the two') as string };
    expect(createAction.guard?.(doc, { doc: {} })).toEqual(refused);
    expect(createAction.guard?.(doc, { doc: {}, replaces: '2-b' })).toEqual(refused);
    expect(createAction.guard?.(doc, { doc: {}, replaces: '3-c' })).toBeUndefined();
    expect(createAction.guard?.({ _id: 'p1' }, { doc: {} })).toEqual(refused);
  });

  it('S8 a document that is replaced loses its fields and keeps its attachments', () => {
    const photo = { 'p.png': { stub: true } };
    expect(createAction.apply({ ...doc, _attachments: photo }, { doc: { name: 'x' } })).toEqual({
      _id: 'p1',
      _attachments: photo,
      name: 'x',
    });
  });

  it.each([
    [{ doc: fields }, undefined],
    [{ doc: { constructor: 1, toString: 2, parent: { _id: 'nested' } }, replaces: '1-a' }, undefined],
    [{}, 'doc: '],
    [{ doc: null }, 'doc: '],
    [{ doc: [] }, 'doc: '],
    [{ doc: { _rev: '1-a' } }, 'doc._rev: cannot be set'],
    [{ doc: { _attachments: {} } }, 'doc._attachments: cannot be set'],
    [{ doc: { a: [{ b: JSON.parse('{"__proto__":1}') as unknown }] } }, 'doc.a.0.b.__proto__: cannot be a field'],
    [{ doc: JSON.parse('{"__proto__":null}') as unknown }, 'doc.__proto__: cannot be a field'],
    [{ doc: {}, replaces: 'latest' }, 'replaces: '],
    [{ doc: {}, type: 'person' }, ': '],
  ])('S9 what cannot be stored is refused, and named: %j', (content, wrong) => {
    if (wrong === undefined) expect(wrongIn(content)).toBeUndefined();
    else expect(wrongIn(content)).toContain(wrong);
  });

  it('S9 fields that contain themselves do not keep the check from its end', () => {
    const endless: Record<string, unknown> = {};
    endless['me'] = endless;
    expect(wrongIn({ doc: endless })).toBeUndefined();
  });
});
