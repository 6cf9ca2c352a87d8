import { describe, expect, it } from 'vitest';
import { differences } from './compare.js';
import type { StoredDocument } from './couch.js';

const store = (...docs: StoredDocument[]): Map<string, StoredDocument> => new Map(docs.map((doc) => [doc._id, doc]));

describe('comparing device and server', () => {
  it('finds nothing where only the order of keys differs', () => {
    const device = store({ _id: 'a', _rev: '1-x', parent: { _id: 'p', parent: { _id: 'q' } } });
    const server = store({ _rev: '1-x', parent: { parent: { _id: 'q' }, _id: 'p' }, _id: 'a' });
    expect(differences(device, server)).toEqual([]);
  });

  it('finds another body, another revision, a conflict, and what is on one side only', () => {
    const device = store(
      { _id: 'a', _rev: '1-x', n: 1 },
      { _id: 'b', _rev: '2-x' },
      { _id: 'c', _rev: '1-x' },
      { _id: 'd', _rev: '1-x' },
    );
    const server = store(
      { _id: 'a', _rev: '1-x', n: 2 },
      { _id: 'b', _rev: '1-x' },
      { _id: 'd', _rev: '1-x', _conflicts: ['1-y'] },
      { _id: 'e', _rev: '1-x' },
    );
    expect(differences(device, server)).toEqual([
      { id: 'a', what: 'body' },
      { id: 'b', what: 'revision' },
      { id: 'c', what: 'only on the device' },
      { id: 'd', what: 'conflict on the server' },
      { id: 'e', what: 'only on the server' },
    ]);
  });
});
