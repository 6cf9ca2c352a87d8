import { describe, expect, it } from 'vitest';
import { digestOf } from '../queue/subjects.js';
import { headerId, type Header } from '../queue/stored.js';
import { pick } from './pick.js';

function header(sequence: number, more: Partial<Header> & { ids?: readonly string[] } = {}): Header {
  const { ids = [`d${String(sequence)}`], ...rest } = more;
  return {
    _id: headerId(sequence),
    target: 'local',
    lane: null,
    state: 'queued',
    subjects: digestOf(ids),
    ...rest,
  } as Header;
}
const nth = (found: Header | undefined): number | undefined =>
  found === undefined ? undefined : Number(found._id.slice(2));
const except =
  (...waiting: number[]) =>
  (_header: Header, sequence: number): boolean =>
    !waiting.includes(sequence);

describe('what runs next', () => {
  it('R17 is the first one that may', () => {
    expect(nth(pick([header(1), header(2)], 'local', except()))).toBe(1);
    expect(nth(pick([header(1), header(2)], 'local', except(1)))).toBe(2);
  });

  it('R17 a waiting one holds back only later ones that share a subject or a lane', () => {
    const all = [
      header(1, { ids: ['a', 'b'], lane: 'x' }),
      header(2, { ids: ['b'] }),
      header(3, { ids: ['c'], lane: 'x' }),
      header(4, { ids: ['d'] }),
    ];
    expect(nth(pick(all, 'local', except(1)))).toBe(4);
  });

  it('R17 one that is held back holds back in turn', () => {
    const all = [header(1, { ids: ['a'] }), header(2, { ids: ['a', 'b'] }), header(3, { ids: ['b'] }), header(4)];
    expect(nth(pick(all, 'local', except(1)))).toBe(4);
  });

  it('R17 ended ones hold back nothing', () => {
    const ended = (['done', 'done-with-failures', 'failed'] as const).map((state, at) =>
      header(at + 1, { ids: ['a'], state }),
    );
    expect(nth(pick([...ended, header(9, { ids: ['a'] })], 'local', except()))).toBe(9);
  });

  it('R17 many subjects may hold back too much, never too little', () => {
    const many = Array.from({ length: 1000 }, (_, at) => `m${String(at)}`);
    const all = [header(1, { ids: many }), header(2, { ids: ['m999'] })];
    expect(pick(all, 'local', except(1))).toBeUndefined();
    expect(nth(pick([header(1, { ids: many, target: 'server' }), header(2)], 'local', except(1)))).toBe(2);
  });

  it('R17 the same document in the other target is another subject', () => {
    const all = [header(1, { ids: ['a'], target: 'server' }), header(2, { ids: ['a'] })];
    expect(nth(pick(all, 'local', except(1)))).toBe(2);
  });
});
