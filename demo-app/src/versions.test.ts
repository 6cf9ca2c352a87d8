import { describe, expect, it } from 'vitest';
import { recordOf, versionsOf } from './versions.js';

describe('two versions side by side', () => {
  const operation = (phone: unknown, action = 'update'): unknown => ({
    action,
    target: 'local',
    id: 'p1',
    key: 'k',
    content: { patch: { phone, parent: { _id: 'c1' } } },
  });

  it('O4 shows field by field what is different, and apart from it what is not', () => {
    const versions = versionsOf({ kind: 'operation', first: operation('1 2'), second: operation('1 3') });
    expect(versions.different).toEqual([{ field: 'patch.phone', first: '1 2', second: '1 3' }]);
    expect(versions.same.map(({ field, first }) => [field, first])).toEqual([
      ['the action', 'update'],
      ['the target', 'local'],
      ['the record', 'p1'],
      ['patch.parent._id', 'c1'],
    ]);
    expect(recordOf({ kind: 'operation', second: operation('1') })).toBe('p1');
  });

  it('O4 tells a number from a text, nothing from an empty text, and another action', () => {
    const different = (first: unknown, second: unknown): unknown =>
      versionsOf({ kind: 'operation', first, second }).different.map((row) => [row.first, row.second]);
    expect(different(operation(7), operation('7'))).toEqual([['7', '"7"']]);
    expect(different(operation(''), operation(undefined))).toEqual([['""', undefined]]);
    expect(different(operation(null), operation([]))).toEqual([['null', '[]']]);
    expect(different(operation('1 2'), operation('1 2', 'other'))).toEqual([['update', 'other']]);
  });

  it('O4 does not take a name with a dot for a path', () => {
    const content = (value: unknown): unknown => ({ content: value });
    const { different } = versionsOf({
      kind: 'operation',
      first: content({ a: { b: 1 } }),
      second: content({ 'a.b': 1 }),
    });
    expect(different).toHaveLength(2);
  });

  it('O5 compares the fields of two documents, not how the operation wraps them', () => {
    const first = { _id: 'p1', _rev: '3-a', type: 'person', name: 'A' };
    const second = {
      action: 'create',
      target: 'local',
      id: 'p1',
      key: 'k',
      content: { doc: { type: 'person', name: 'B' } },
    };
    expect(versionsOf({ kind: 'create', first, second })).toEqual({
      different: [{ field: 'name', first: 'A', second: 'B' }],
      same: [{ field: 'type', first: 'person', second: 'person' }],
      hasFirst: true,
    });
  });

  it('O6 compares two events', () => {
    const first = { _id: 'e1', documentId: 'p1', changed: true };
    const second = { publisher: 'couchdb', event: { _id: 'e1', documentId: 'p1', changed: false } };
    expect(versionsOf({ kind: 'event', first, second }).different).toEqual([
      { field: 'changed', first: 'true', second: 'false' },
    ]);
    expect(recordOf({ kind: 'event', second })).toBe('p1');
  });

  it('O4 shows the second version alone when the first is not stored any more', () => {
    const { different, hasFirst } = versionsOf({ kind: 'bulk-operation', first: undefined, second: { total: 1 } });
    expect(hasFirst).toBe(false);
    expect(different).toEqual([{ field: 'total', first: undefined, second: '1' }]);
  });
});
