import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serverUnderTest, temporaryDatabases } from '@afield/devserver';
import { expect, test, type Page } from '@playwright/test';
import { builtFiles } from './built-app.js';

const here = fileURLToPath(new URL('.', import.meta.url));

/** The examples under a heading of the README, as files of these names, built for the browser as an app's own build would. */
async function builtExamples(
  folder: string,
  heading: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const readme = await readFile(join(here, '..', '..', 'README.md'), 'utf8');
  const section = readme.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const examples = [...section.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, example]) => example ?? '');
  if (examples.length < names.length) throw new Error(`README.md has too few examples under "${heading}".`);
  await Promise.all(names.map((name, at) => writeFile(join(folder, name), examples[at] ?? '')));
  return builtFiles(folder, join(folder, 'page.ts'));
}

interface Opened {
  readonly records: string;
  readonly results: string;
  /** Asks the server as an admin. */
  readonly ask: (url: string) => Promise<Record<string, unknown>>;
  /** What the page said on its console. */
  readonly said: readonly string[];
}

/** Opens the examples in the page, with a server behind the address that they name, and lets `use` look at what they do. */
async function withExamples(
  page: Page,
  heading: string,
  names: readonly string[],
  use: (opened: Opened) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(here, '..', 'test-results-readme-'));
  const server = await serverUnderTest();
  const databases = temporaryDatabases(server.url, server.admin);
  try {
    const records = await databases.create('records');
    const results = await databases.create('results');
    const files = await builtExamples(folder, heading, names);
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    const said: string[] = [];
    page.on('console', (message) => said.push(message.text()));
    // The address in the README is a fixed port; the server of this test has a free one, for whatever the page asks.
    const named = new Map([
      ['records', records.url],
      ['results', results.url],
    ]);
    const behind = (url: string): string =>
      url.replace(
        /^http:\/\/127\.0\.0\.1:5984\/([^/?]*)/,
        (_, name: string) => named.get(name) ?? `${server.url}/${name}`,
      );
    await page.route('http://127.0.0.1:5984/**', async (route) => {
      const url = route.request().url();
      const code = files.get(new URL(url).pathname);
      if (code !== undefined) return route.fulfill({ contentType: 'text/javascript', body: code });
      // The server ends a connection that has rested; a request that meets this end is made again.
      return route.fulfill({ response: await route.fetch({ url: behind(url), maxRetries: 3 }) });
    });
    await page.route('http://127.0.0.1:5984/', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: '<!doctype html><script type="module" src="/page.js"></script>',
      }),
    );
    await page.goto('http://127.0.0.1:5984/');
    const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
    const ask = async (url: string): Promise<Record<string, unknown>> =>
      (await (await fetch(url, { headers: { authorization } })).json()) as Record<string, unknown>;
    await use({ records: records.url, results: results.url, ask, said });
    expect(problems).toEqual([]);
  } finally {
    await page.close();
    await databases.dispose();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

test('the example of the README runs as it stands', ({ page }) =>
  withExamples(page, 'An example', ['page.ts'], async ({ records, results, ask, said }) => {
    await expect.poll(async () => (await ask(`${records}/p1`))['parent']).toEqual({ _id: 'c2' });
    await expect
      .poll(async () =>
        ((await ask(`${results}/_all_docs?include_docs=true`))['rows'] as { doc: object }[]).map(({ doc }) => doc),
      )
      .toMatchObject([
        { type: 'afield-device', pending: 0, failed: 0 },
        { type: 'afield-result', state: 'done', total: 1, applied: 1, failed: 0 },
      ]);
    await expect.poll(() => said.some((line) => line.startsWith('idle pending: 0 failed: 0'))).toBe(true);
  }));

test('the client of the README that runs in a worker does what it says', ({ page }) =>
  withExamples(page, 'In a Web Worker', ['client.worker.ts', 'page.ts'], async ({ records, ask, said }) => {
    await expect.poll(async () => (await ask(`${records}/p9`))['name']).toBe('Person 9');
    await expect.poll(() => said.at(-1)).toBe('idle pending: 0');
    expect(page.workers()).toHaveLength(1);
  }));
