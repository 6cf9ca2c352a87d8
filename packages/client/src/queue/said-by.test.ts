import { expect, it } from 'vitest';
import { saidBy } from './request.js';

it.each([
  [{ message: 'Unrecognized key: "ky"', code: 'unrecognized_keys', keys: ['ky'] }, 'Unrecognized key: "ky"'],
  [
    { message: 'Invalid input: expected string', code: 'invalid_type', expected: 'string' },
    'Invalid input: expected string',
  ],
  [{ message: 'Invalid input', code: 'unrecognized_keys', keys: ['ky'] }, 'Invalid input: unrecognized keys ky'],
  [
    { message: 'Invalid input', code: 'invalid_type', expected: 'string' },
    'Invalid input: invalid type, expected string',
  ],
  [{ message: 'Invalid input', code: 'custom' }, 'Invalid input'],
])('S9 what a schema says is said once: %#', (issue, words) => {
  expect(saidBy(issue)).toBe(words);
});
