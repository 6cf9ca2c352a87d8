import { z } from 'zod/mini';

/** Whole numbers from the first (included) to the second (excluded). */
export const range = z.tuple([z.int(), z.int()]);
export type Range = z.infer<typeof range>;

/** The same numbers as sorted ranges that do not touch. */
export function rangesOf(numbers: readonly number[]): Range[] {
  return withAdded([], numbers);
}

/** All numbers of both. */
export function withAdded(ranges: readonly Range[], numbers: readonly number[]): Range[] {
  return numbers.length === 0 ? [...ranges] : joined([...ranges, ...numbers.map((one): Range => [one, one + 1])]);
}

/** The numbers of `ranges` without these. */
export function without(ranges: readonly Range[], numbers: readonly number[]): Range[] {
  if (numbers.length === 0) return [...ranges];
  const gone = new Set(numbers);
  const left: Range[] = [];
  for (const [from, to] of ranges) {
    let start = from;
    for (let at = from; at < to; at++) {
      if (!gone.has(at)) continue;
      if (at > start) left.push([start, at]);
      start = at + 1;
    }
    if (start < to) left.push([start, to]);
  }
  return left;
}

/** The first of the numbers that are at least `least` and smaller than `end`. */
export function firstOf(ranges: readonly Range[], least: number, end: number, most: number): number[] {
  const found: number[] = [];
  for (const [from, to] of ranges) {
    for (let at = Math.max(from, least); at < Math.min(to, end); at++) {
      if (found.length === most) return found;
      found.push(at);
    }
  }
  return found;
}

export function countOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from, 0);
}

function joined(ranges: readonly Range[]): Range[] {
  const sorted = [...ranges].sort(([a], [b]) => a - b);
  const found: Range[] = [];
  for (const [from, to] of sorted) {
    const last = found[found.length - 1];
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  }
  return found;
}
