import { databaseOfUser } from '@afield/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examplesOf, type Examples } from './examples.js';

describe('the example of docs/server.md', () => {
  let examples: Examples;
  beforeAll(async () => {
    examples = await examplesOf('docs/server.md');
  });
  afterAll(() => examples.remove());

  it('compiles in strict mode, and names the database that setup makes', async () => {
    expect(await examples.compile()).toBe('');
    const { resultsOf } = (await import(/* @vite-ignore */ examples.files[0] ?? '')) as {
      resultsOf(server: string, user: string): string;
    };
    for (const user of ['ann', 'Ünal', '😀']) {
      expect(resultsOf('http://a', user)).toBe(`http://a/${databaseOfUser('afield-results', user)}`);
    }
  }, 60_000);
});
