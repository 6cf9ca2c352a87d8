import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@afield/devserver';
import { chromium, expect, test, type Page } from '@playwright/test';
import { BuiltApp } from '../built-app.js';

/** The sources: a build takes them, as an app's would. */
const folder = fileURLToPath(new URL('.', import.meta.url));
/** A busy machine makes long tasks of its own, but not in every round; what the client does, it does in each. */
const mostRounds = 4;

test.describe('a client in a worker', () => {
  let app: BuiltApp;
  test.beforeAll(async () => {
    app = await BuiltApp.start(folder, `${folder}page.ts`);
  });
  test.afterAll(() => app.close());

  test('moves 2,000 people while the page stays free, and loses nothing when the page is reloaded', async () => {
    const profile = await temporaryFolder('afield-worker');
    // On disk, as on a device: other contexts keep their stores in memory.
    const context = await chromium.launchPersistentContext(profile.folder, test.info().project.use.launchOptions);
    const problems: string[] = [];
    try {
      const page = context.pages()[0] ?? (await context.newPage());
      page.on('pageerror', (error) => problems.push(error.message));
      page.on('console', (message) => {
        if (message.type() === 'error') problems.push(message.text());
      });
      await page.goto(app.address);
      await page.evaluate(() => window.app.seed());

      await page.evaluate(() => {
        window.app.watch();
        return window.app.block(80);
      });
      expect((await page.evaluate(() => window.app.seen())).longTasks, 'a long task is noticed').toHaveLength(1);

      let longTasks: readonly number[] = [];
      for (let round = 1; round <= mostRounds; round++) {
        await page.evaluate(
          (to) => {
            window.app.watch();
            return window.app.move(to);
          },
          `h${String(round)}`,
        );
        await isDone(page);
        const seen = await page.evaluate(() => window.app.seen());
        expect(seen.cursors.length, 'states that arrived while it ran').toBeGreaterThan(5);
        expect(await page.evaluate(() => window.app.parents())).toEqual({ [`h${String(round)}`]: 2000 });
        longTasks = seen.longTasks;
        if (longTasks.length === 0) break;
      }
      expect(longTasks, 'long tasks of the page, in each round').toEqual([]);

      const id = await page.evaluate(() => window.app.move('last'));
      await expect.poll(async () => (await page.evaluate(() => window.app.newest())).cursor).toBeGreaterThan(200);
      expect(await page.evaluate(() => window.app.note())).toMatch(/ visible$/);
      await page.reload();
      const found = await page.evaluate(() => window.app.found());
      expect(found.id).toBe(id);
      expect(found.cursor, 'it was in the middle').toBeLessThan(2000);
      await isDone(page);
      expect(await page.evaluate(() => window.app.newest())).toMatchObject({
        id,
        total: 2000,
        cursor: 2000,
        failed: 0,
      });
      expect(await page.evaluate(() => window.app.parents())).toEqual({ last: 2000 });
      expect(problems).toEqual([]);
    } finally {
      await context.close();
      await profile.remove();
    }
  });
});

async function isDone(page: Page): Promise<void> {
  await expect
    .poll(async () => (await page.evaluate(() => window.app.newest())).state, { intervals: [100] })
    .toBe('done');
}
