import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examplesOf, type Examples } from './examples.js';

const page = 'packages/testing/README.md';

describe('the examples of the README of @afield/testing', () => {
  let examples: Examples;
  beforeAll(async () => {
    examples = await examplesOf(page);
  });
  afterAll(() => examples.remove());

  it('compile in strict mode', async () => {
    expect(examples.files.length).toBeGreaterThanOrEqual(8);
    expect(await examples.compile()).toBe('');
  }, 60_000);

  it('run as they stand, and what they claim is so', async () => {
    for (const file of examples.files) await import(/* @vite-ignore */ file);
  }, 60_000);
});
