import { expect, it } from 'vitest';
import { endsLike } from './rules.js';

it.each([
  ['/main/_bulk_docs', '_bulk_docs', true],
  ['/main/_bulk_docs', '/other/_bulk_docs', false],
  ['/main/_bulk_docs/more', '_bulk_docs', false],
  ['/main/a', '*', true],
  ['/main/_local/x', '/main/_local/*', true],
  ['/other/_local/x', '/main/_local/*', false],
  ['/main/a/photo', '/main/*/photo', true],
  ['/aa', 'a*a', true],
  ['/a', 'a*a', false],
])('%s ends like %s: %s', (path, pattern, expected) => {
  expect(endsLike(path, pattern)).toBe(expected);
});
