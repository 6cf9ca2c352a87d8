import { describe, expect, it } from 'vitest';
import { digestsOf, hashesOf, inHeader, mostSubjects, subjectsOf, type Digest } from './subjects.js';

const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `person-${String(at)}`);
const noTurn = (): Promise<void> => Promise.resolve();
const hashed = async (count: number): Promise<{ hashes: ReadonlySet<number>; docs: Digest[] }> => {
  const hashes = (await subjectsOf(names(count), noTurn)) ?? new Set<number>();
  return { hashes, docs: [...digestsOf(hashes, 'd:x:')] };
};

describe('what a bulk operation keeps in order', () => {
  it('R17 each document once, and nothing for an operation without one', async () => {
    const subjects = await subjectsOf(['a', 'b', 'a', null, undefined, 7], noTurn);
    expect(subjects?.size).toBe(2);
    expect(await subjectsOf(['b', 'a'], noTurn)).toEqual(subjects);
  });

  it('R17 few stand in the header, many beside it, and too many for both count as everything', async () => {
    const few = await subjectsOf(names(256), noTurn);
    expect(inHeader(few, 'd:x:')).toEqual([...(few ?? [])]);
    const many = await subjectsOf(names(257), noTurn);
    expect(inHeader(many, 'd:x:')).toEqual({ digest: 'd:x:', count: 257 });
    const most = await subjectsOf(names(mostSubjects + 200), noTurn);
    expect(inHeader(most, 'd:x:')).toBeNull();
  });

  it('R17 what was stored is read as it was, over several documents', async () => {
    const { hashes, docs } = await hashed(40_000);
    expect(docs.map(({ _id }) => _id)).toEqual(['d:x:000000000000', 'd:x:000000000001', 'd:x:000000000002']);
    expect(new Set(await hashesOf(docs, hashes.size, noTurn))).toEqual(hashes);
  });

  it('R17 a digest with a document missing, or one that cannot be read, is not taken for the whole', async () => {
    const { hashes, docs } = await hashed(40_000);
    expect(await hashesOf(docs.slice(1), hashes.size, noTurn)).toBeUndefined();
    expect(await hashesOf(docs, hashes.size - 1, noTurn)).toBeUndefined();
    const damaged = [{ _id: 'd:x:0', v: 1, hashes: '%' } as const, ...docs.slice(1)];
    expect(await hashesOf(damaged, hashes.size, noTurn)).toBeUndefined();
  });

  it('gives the page its turns while many documents are hashed, and read', async () => {
    let turns = 0;
    const turn = (): Promise<void> => {
      turns++;
      return Promise.resolve();
    };
    await subjectsOf(names(50_000), turn);
    expect(turns).toBe(10);
    const { hashes, docs } = await hashed(40_000);
    turns = 0;
    await hashesOf(docs, hashes.size, turn);
    expect(turns).toBe(docs.length);
  });
});
