import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countOf, firstOf, within, without, withAdded, type Range } from './ranges.js';

const numbers = fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 40 });
const rangesOf = (all: readonly number[]): Range[] => withAdded([], all);
const listOf = (ranges: readonly Range[]): number[] => firstOf(ranges, 0, Infinity, Infinity);
const sorted = (all: Iterable<number>): number[] => [...new Set(all)].sort((a, b) => a - b);

describe('ranges of numbers', () => {
  it('O3 hold what a set of numbers would hold', () => {
    fc.assert(
      fc.property(numbers, numbers, (one, other) => {
        expect(listOf(rangesOf(one))).toEqual(sorted(one));
        expect(listOf(withAdded(rangesOf(one), other))).toEqual(sorted([...one, ...other]));
        const gone = new Set(other);
        expect(listOf(without(rangesOf(one), other))).toEqual(sorted(one.filter((number) => !gone.has(number))));
        expect(sorted(within(rangesOf(one), other))).toEqual(sorted(other.filter((number) => one.includes(number))));
        expect(countOf(rangesOf(one))).toBe(new Set(one).size);
      }),
    );
  });

  it('O3 are sorted and never touch, and the given ones stay as they are', () => {
    fc.assert(
      fc.property(numbers, numbers, (one, other) => {
        const given = rangesOf(one);
        const before = structuredClone(given);
        for (const made of [withAdded(given, other), without(given, other)]) {
          made.forEach(([from, to], place) => {
            expect(from).toBeLessThan(to);
            expect(from).toBeGreaterThan(made[place - 1]?.[1] ?? -1);
          });
        }
        expect(given).toEqual(before);
      }),
    );
  });

  it('O3 give the first so many between two numbers', () => {
    fc.assert(
      fc.property(numbers, fc.nat(60), fc.nat(60), fc.nat(9), (one, least, end, most) => {
        const expected = sorted(one).filter((number) => number >= least && number < end);
        expect(firstOf(rangesOf(one), least, end, most)).toEqual(expected.slice(0, most));
      }),
    );
  });
});
