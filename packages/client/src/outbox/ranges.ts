import { z } from 'zod/mini';

/** Whole numbers from the first (included) to the second (excluded). */
export const range = z.tuple([z.int(), z.int()]);
export type Range = z.infer<typeof range>;

/*
 * Lists of ranges are sorted, and no two of them touch. Each of these takes time in proportion to the ranges and the
 * numbers given, never to what the ranges hold: a hundred thousand events that wait may be one range.
 */

/** All numbers of both. */
export function withAdded(ranges: readonly Range[], numbers: readonly number[]): Range[] {
  const added = ascending(numbers);
  const found: Range[] = [];
  const put = (from: number, to: number): void => {
    const last = found[found.length - 1];
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  };
  let next = 0;
  for (const [from, to] of ranges) {
    for (; (added[next] ?? Infinity) < from; next++) put(added[next] ?? from, (added[next] ?? from) + 1);
    put(from, to);
  }
  for (const one of added.slice(next)) put(one, one + 1);
  return found;
}

/** The numbers of `ranges` without these. */
export function without(ranges: readonly Range[], numbers: readonly number[]): Range[] {
  const gone = ascending(numbers);
  const left: Range[] = [];
  let next = 0;
  for (const [from, to] of ranges) {
    let start = from;
    for (let at = gone[next]; at !== undefined && at < to; at = gone[++next]) {
      if (at > start) left.push([start, at]);
      start = Math.max(start, at + 1);
    }
    if (start < to) left.push([start, to]);
  }
  return left;
}

/** Which of these numbers are in `ranges`. */
export function within(ranges: readonly Range[], numbers: readonly number[]): Set<number> {
  const found = new Set<number>();
  const asked = ascending(numbers);
  let next = 0;
  for (const [from, to] of ranges) {
    for (let at = asked[next]; at !== undefined && at < to; at = asked[++next]) if (at >= from) found.add(at);
  }
  return found;
}

/** The first of the numbers that are at least `least` and smaller than `end`, at most so many. */
export function firstOf(ranges: readonly Range[], least: number, end: number, most: number): number[] {
  const found: number[] = [];
  for (const [from, to] of ranges) {
    if (from >= end) break;
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

function ascending(numbers: readonly number[]): readonly number[] {
  return [...numbers].sort((a, b) => a - b);
}
