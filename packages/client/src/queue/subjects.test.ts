import { describe, expect, it } from 'vitest';
import { digestOf, hashesOf, mostSubjects, storedSubjects, subjectsOf } from './subjects.js';

const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `person-${String(at)}`);
const noTurn = (): Promise<void> => Promise.resolve();

describe('what a bulk operation keeps in order', () => {
  it('R17 each document once, and nothing for an operation without one', async () => {
    const subjects = await subjectsOf(['a', 'b', 'a', null, undefined, 7], noTurn);
    expect(subjects).toHaveLength(2);
    expect(await subjectsOf(['b', 'a'], noTurn)).toEqual([...(subjects ?? [])].reverse());
  });

  it('R17 few stand in the header, many beside it, and too many for both count as everything', async () => {
    const few = await subjectsOf(names(256), noTurn);
    expect(storedSubjects(few, 'd:x:')).toEqual({ inHeader: few, digests: [] });
    const many = await subjectsOf(names(257), noTurn);
    expect(storedSubjects(many, 'd:x:')).toEqual({ inHeader: { digest: 'd:x:', count: 257 }, digests: [many] });
    const most = await subjectsOf(names(mostSubjects + 200), noTurn);
    expect(storedSubjects(most, 'd:x:')).toEqual({ inHeader: null, digests: [] });
  });

  it('R17 what was stored is read as it was, over several documents', async () => {
    const hashes = (await subjectsOf(names(40_000), noTurn)) ?? [];
    const { digests } = storedSubjects(hashes, 'd:x:');
    const docs = digests.map((part, at) => digestOf(`d:x:${String(at)}`, part));
    expect(docs.length).toBeGreaterThan(1);
    expect([...(hashesOf(docs, hashes.length) ?? [])]).toEqual(hashes);
  });

  it('R17 a digest with a document missing, or one that cannot be read, is not taken for the whole', async () => {
    const hashes = (await subjectsOf(names(40_000), noTurn)) ?? [];
    const docs = storedSubjects(hashes, 'd:x:').digests.map((part, at) => digestOf(`d:x:${String(at)}`, part));
    expect(hashesOf(docs.slice(1), hashes.length)).toBeUndefined();
    expect(hashesOf(docs, hashes.length - 1)).toBeUndefined();
    expect(hashesOf([{ _id: 'd:x:0', v: 1, hashes: '%' }, ...docs.slice(1)], hashes.length)).toBeUndefined();
  });

  it('gives the page its turns while many documents are hashed', async () => {
    let turns = 0;
    await subjectsOf(names(50_000), () => {
      turns++;
      return Promise.resolve();
    });
    expect(turns).toBe(10);
  });
});
