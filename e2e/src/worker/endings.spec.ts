import { fileURLToPath } from 'node:url';
import { expect, test } from '@playwright/test';
import { BuiltApp } from '../built-app.js';

const folder = fileURLToPath(new URL('.', import.meta.url));

test.describe('a client in a worker that ends', () => {
  let app: BuiltApp;
  test.beforeAll(async () => {
    app = await BuiltApp.start(folder, `${folder}endings.ts`);
  });
  test.afterAll(() => app.close());

  test('is lost where it cannot be loaded, or is terminated', async ({ page }) => {
    await page.goto(app.address);
    expect(await page.evaluate(() => window.endings.missing())).toBe('worker_lost');
    expect(await page.evaluate(() => window.endings.terminated())).toEqual(['worker_lost', 'worker_lost']);
  });

  test('a SharedWorker serves two pages, and goes on when one of them is closed', async ({ context, page: first }) => {
    const second = await context.newPage();
    for (const page of [first, second]) await page.goto(app.address);
    const storeIds = await Promise.all(
      [first, second].map((page) => page.evaluate(() => window.endings.connectShared())),
    );
    expect(storeIds[0]).toBe(storeIds[1]);
    await first.evaluate(() => window.endings.create('a'));
    await second.evaluate(() => window.endings.done(1));
    await first.close();
    await second.evaluate(() => window.endings.create('b'));
    await second.evaluate(() => window.endings.done(2));
  });
});
