import { expect, it } from 'vitest';
import { groupCount } from './pull-list.js';

it('S2 the groups of a list are about a thousand, and are not made anew for a few ids more or less', () => {
  expect(groupCount(0, [])).toBe(1);
  expect(groupCount(1000, [])).toBe(1);
  expect(groupCount(1001, [])).toBe(2);
  expect(groupCount(10_000, [])).toBe(16);
  // In use already: it stays until its groups are far too large, or far too small.
  expect(groupCount(2000, [1])).toBe(1);
  expect(groupCount(2001, [1])).toBe(4);
  expect(groupCount(1000, [4])).toBe(4);
  expect(groupCount(999, [4])).toBe(1);
  expect(groupCount(10_000, [1, 8])).toBe(8);
});
