import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examplesOf, type Examples } from './examples.js';

describe('the example of docs/events.md', () => {
  let examples: Examples;
  beforeAll(async () => {
    examples = await examplesOf('docs/events.md');
  });
  afterAll(() => examples.remove());

  it('compiles in strict mode', async () => {
    expect(examples.files).toHaveLength(1);
    expect(await examples.compile()).toBe('');
  }, 60_000);

  it('runs as it stands, and what it claims is so', async () => {
    for (const file of examples.files) await import(/* @vite-ignore */ file);
  }, 60_000);
});
