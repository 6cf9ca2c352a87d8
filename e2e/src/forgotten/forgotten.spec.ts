import { fileURLToPath } from 'node:url';
import { serverUnderTest, temporaryDatabases, temporaryFolder } from '@afield/devserver';
import { chromium, expect, test } from '@playwright/test';
import { BuiltApp } from '../built-app.js';

/** The sources: a build takes them, as an app's would. */
const folder = fileURLToPath(new URL('.', import.meta.url));

test('S2 what leaves a browser’s storage is gone from it, stays at the server, and can come back as it was', async () => {
  const app = await BuiltApp.start(folder, `${folder}page.ts`);
  const server = await serverUnderTest();
  const databases = temporaryDatabases(server.url, server.admin);
  const profile = await temporaryFolder('afield-forgotten');
  // On disk, as on a device: other contexts keep their stores in memory.
  const context = await chromium.launchPersistentContext(profile.folder, test.info().project.use.launchOptions);
  try {
    const attachment = { content_type: 'text/plain', data: btoa('attached-secret') };
    const docs = ['a', 'b'].map((_id) => ({ _id, secret: `secret-of-${_id}`, _attachments: { 'n.txt': attachment } }));
    const records = await databases.create('records', { docs });
    const page = context.pages()[0] ?? (await context.newPage());
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(`${app.address}?${new URLSearchParams({ server: records.url, ...server.admin }).toString()}`);
    const there = async (id: string): Promise<unknown> => {
      const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
      const answer = await fetch(`${records.url}/${id}?attachments=true`, {
        headers: { authorization, accept: 'application/json' },
      });
      return answer.json();
    };

    await page.evaluate(() => window.forgotten.pulled());
    expect(await page.evaluate(() => window.forgotten.get('b'))).toMatchObject({ secret: 'secret-of-b' });
    expect(await page.evaluate(() => window.forgotten.stored())).toContain('secret-of-b');
    await page.evaluate(() => window.forgotten.edit('b'));
    await expect.poll(() => there('b')).toMatchObject({ note: 'mine' });
    const before = await there('b');

    // It is kept until the push has noted that the server has it.
    const withoutB = async (): Promise<unknown> => {
      await page.evaluate(() => window.forgotten.pullOf(['a']));
      return page.evaluate(() => window.forgotten.get('b'));
    };
    await expect.poll(withoutB).toBe('deleted');
    const stored = await page.evaluate(() => window.forgotten.stored());
    expect(stored).toContain('secret-of-a');
    expect(stored).not.toContain('secret-of-b');
    await page.evaluate(() => window.forgotten.edit('a'));
    // What is pushed later goes past it.
    await expect.poll(() => there('a')).toMatchObject({ note: 'mine' });
    expect(await there('b')).toEqual(before);

    await page.evaluate(() => window.forgotten.pullOf(['a', 'b']));
    expect(await page.evaluate(() => window.forgotten.get('b'))).toMatchObject({
      _rev: (before as { _rev: string })._rev,
      secret: 'secret-of-b',
      note: 'mine',
      _attachments: { 'n.txt': { data: attachment.data } },
    });
    expect(problems).toEqual([]);
  } finally {
    await context.close();
    await profile.remove();
    await databases.dispose();
    await server.close();
    await app.close();
  }
});
