import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serverUnderTest, temporaryDatabases } from '@afield/devserver';
import { expect, test } from '@playwright/test';
import { build } from 'vite';

const here = fileURLToPath(new URL('.', import.meta.url));

/** The lines of the README, in one file for the browser, as an app's own build would make it. */
async function builtExample(folder: string): Promise<string> {
  const readme = await readFile(join(here, '..', '..', 'README.md'), 'utf8');
  const [, example] = /## An example[\s\S]*?```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  if (example === undefined) throw new Error('README.md has no example.');
  await writeFile(join(folder, 'example.ts'), example);
  const result = await build({
    root: folder,
    logLevel: 'silent',
    configFile: false,
    build: {
      write: false,
      target: 'esnext',
      lib: { entry: join(folder, 'example.ts'), formats: ['es'], fileName: 'e' },
    },
    define: { global: 'globalThis' },
  });
  const [output] = Array.isArray(result) ? result : [result];
  if (output === undefined || !('output' in output)) throw new Error('vite built nothing.');
  return output.output[0].code;
}

test('the example of the README runs as it stands', async ({ page }) => {
  const folder = await mkdtemp(join(here, '..', 'test-results-readme-'));
  const server = await serverUnderTest();
  const databases = temporaryDatabases(server.url, server.admin);
  try {
    const records = await databases.create('records');
    const results = await databases.create('results');
    const code = await builtExample(folder);
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    const said: string[] = [];
    page.on('console', (message) => said.push(message.text()));
    // The address in the README is a fixed port; the server of this test has a free one.
    await page.route('http://127.0.0.1:5984/**', async (route) => {
      const url = route.request().url();
      const target = url
        .replace('http://127.0.0.1:5984/records', records.url)
        .replace('http://127.0.0.1:5984/results', results.url);
      await route.fulfill({ response: await route.fetch({ url: target }) });
    });
    await page.route('http://127.0.0.1:5984/', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: '<!doctype html><script type="module" src="/example.js"></script>',
      }),
    );
    await page.route('http://127.0.0.1:5984/example.js', (route) =>
      route.fulfill({ contentType: 'text/javascript', body: code }),
    );
    await page.goto('http://127.0.0.1:5984/');
    const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
    const ask = async (url: string): Promise<Record<string, unknown>> =>
      (await (await fetch(url, { headers: { authorization } })).json()) as Record<string, unknown>;
    await expect.poll(async () => (await ask(`${records.url}/p1`))['parent']).toEqual({ _id: 'c2' });
    await expect
      .poll(async () =>
        ((await ask(`${results.url}/_all_docs?include_docs=true`))['rows'] as { doc: object }[]).map(({ doc }) => doc),
      )
      .toMatchObject([{ type: 'afield-result', state: 'done', total: 1, applied: 1, failed: 0 }]);
    await expect.poll(() => said.some((line) => line.startsWith('idle pending: 0 failed: 0'))).toBe(true);
    expect(problems).toEqual([]);
  } finally {
    await page.close();
    await databases.dispose();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
});
