import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@afield/devserver';
import { chromium, expect, test, type BrowserContext, type Page } from '@playwright/test';
import { BuiltApp } from '../built-app.js';

/** The sources: a build takes them, as an app's would. */
const folder = fileURLToPath(new URL('.', import.meta.url));

test.describe('logging out in a real browser', () => {
  let app: BuiltApp;
  let profile: Awaited<ReturnType<typeof temporaryFolder>>;
  let context: BrowserContext;

  test.beforeEach(async () => {
    app = await BuiltApp.start(folder, `${folder}page.ts`);
    profile = await temporaryFolder('afield-logout');
    // On disk, as on a device: other contexts keep their stores in memory.
    context = await chromium.launchPersistentContext(profile.folder, test.info().project.use.launchOptions);
  });
  test.afterEach(async () => {
    await context.close();
    await profile.remove();
    await app.close();
  });

  const tab = async (user = 'amber'): Promise<Page> => {
    const page = await context.newPage();
    await page.goto(`${app.address}?user=${user}`);
    await page.waitForFunction(() => 'logout' in window);
    return page;
  };
  const left = (page: Page): Promise<unknown> => page.evaluate(() => window.logout.left());
  const nothing = { databases: [], notes: [] };

  test('S7 no database and no note is left, whatever tabs are open, and the next person finds nothing', async () => {
    const [first, second] = [await tab(), await tab()];
    await first.evaluate(() => window.logout.work());
    await second.evaluate(() => window.logout.open());
    expect(await left(first)).toMatchObject({
      databases: expect.arrayContaining(['_pouch_visits', '_pouch_visits-afield-queue']) as unknown,
      notes: expect.arrayContaining(['afield:visits:run']) as unknown,
    });
    // The tab that does not lead: the other one has to give everything up.
    expect(await second.evaluate(() => window.logout.logout(false))).toBe('left');
    expect(await left(second)).toEqual(nothing);
    expect(await first.evaluate(() => window.logout.enqueue('a'))).toBe('client_closed');
    // What the closed tab does when a person leaves it brings nothing back.
    await first.reload({ waitUntil: 'commit' });
    await first.goto('about:blank');
    const next = await tab('birch');
    expect(await next.evaluate(() => window.logout.shown())).toBe(0);
  });

  test('S7 refuses while something has failed, and gives it up when forced, offline', async () => {
    const page = await tab();
    await page.evaluate(() => window.logout.work());
    await page.evaluate(() => window.logout.fail());
    await context.setOffline(true);
    expect(await page.evaluate(() => window.logout.logout(false))).toMatchObject({ failed: 1, pending: 0 });
    expect(await page.evaluate(() => window.logout.shown())).toBe(2);
    expect(await page.evaluate(() => window.logout.logout(true))).toBe('left');
    expect(await left(page)).toEqual(nothing);
  });

  test('S7 a tab that is stopped does not hold it up for ever, and writes nothing anew when it wakes', async () => {
    const [stopped, page] = [await tab(), await tab()];
    await stopped.evaluate(() => window.logout.work());
    await page.evaluate(() => window.logout.open());
    const session = await context.newCDPSession(stopped);
    await session.send('Debugger.enable');
    await session.send('Debugger.pause');
    const woken = stopped.evaluate(() => window.logout.enqueue('a'));
    expect(await page.evaluate(() => window.logout.logout(true))).toContain('Close all tabs');
    await session.send('Debugger.resume');
    expect(await woken).not.toBe('queued');
    await expect.poll(async () => left(page)).toEqual(nothing);
  });
});
