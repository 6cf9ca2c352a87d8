import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@afield/devserver';
import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { chromiumArguments } from './chromium-arguments.js';
import { differences } from './compare.js';
import { allDocuments, type StoredDocument } from './couch.js';
import { DemoError } from './demo-error.js';
import { Device, isSettled, type DeviceState } from './device.js';
import { moves, withFailures, type OncePlan } from './once-plan.js';
import type { Voice } from './run-demo.js';
import { sampleFolder, serveDemo, type RunningDemo } from './serve.js';

export interface OnceOptions extends Voice {
  /** Folder with CSV files; default: the sample. */
  readonly data?: string | undefined;
  readonly executablePath: string;
}

/** The line that is printed at the end. */
interface OnceResult {
  readonly queued: number;
  readonly applied: number;
  readonly alreadyApplied: number;
  readonly failed: number;
  readonly attempts: number;
  readonly serverResults: number;
  readonly serverFailedOperations: number;
  readonly seconds: number;
}

/** Collects what does not hold, so that one run shows all of it. */
class Claims {
  readonly broken: string[] = [];

  that(isTrue: boolean, claim: string): void {
    if (!isTrue) this.broken.push(claim);
  }

  same(actual: unknown, expected: unknown, what: string): void {
    this.that(
      JSON.stringify(actual) === JSON.stringify(expected),
      `${what}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(actual)}`,
    );
  }
}

/**
 * The main job without a person: import, outage, a move of thousands of records with five that must fail, a reload in
 * the middle, the server back; then device and server are compared. Answers the exit code.
 */
export async function runOnce({ data, executablePath, say, print, atEnd }: OnceOptions): Promise<number> {
  const started = Date.now();
  const folder = data ?? sampleFolder;
  const files = (await namesIn(folder)).filter((name) => name.endsWith('.csv')).map((name) => join(folder, name));
  if (files.length === 0) throw new DemoError(`There are no .csv files in ${folder}.`);
  const closers: (() => Promise<void>)[] = [];
  const tidyUp = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  atEnd(tidyUp);
  try {
    const profile = await temporaryFolder('afield-browser');
    closers.push(() => profile.remove());
    const demo = await serveDemo({ couchUrl: process.env['COUCHDB_URL'], ownDatabases: true });
    closers.push(() => demo.close());
    const browser = await openBrowser(profile.folder, executablePath);
    closers.push(() => browser.close());
    const page = browser.pages()[0] ?? (await browser.newPage());
    const claims = new Claims();
    const result = await doTheJob(page, demo, files, claims, say);
    for (const claim of claims.broken) say(`Not so: ${claim}`);
    print(JSON.stringify({ ...result, seconds: Math.round((Date.now() - started) / 100) / 10 } satisfies OnceResult));
    return claims.broken.length === 0 ? 0 : 1;
  } finally {
    await tidyUp();
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new DemoError(`The folder ${folder} is not there.`, { cause: error });
    if (code === 'ENOTDIR') throw new DemoError(`${folder} is no folder.`, { cause: error });
    throw new DemoError(`The folder ${folder} can’t be read: ${code ?? String(error)}.`, { cause: error });
  }
}

/** On disk, so that a reload finds what a real browser would find. Signals are ours: the browser is closed in order. */
function openBrowser(profile: string, executablePath: string): Promise<BrowserContext> {
  return chromium.launchPersistentContext(profile, {
    executablePath,
    args: [...chromiumArguments],
    headless: true,
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
}

async function doTheJob(
  page: Page,
  demo: RunningDemo,
  files: readonly string[],
  claims: Claims,
  say: (line: string) => void,
): Promise<Omit<OnceResult, 'seconds'>> {
  page.on('pageerror', (error) => claims.that(false, `the page threw ${error.stack ?? error.message}`));
  const device = new Device(page);
  const isSmall = files.some((file) => file.startsWith(sampleFolder));
  await device.open(isSmall ? `${demo.address}?batchSize=2` : demo.address);

  say(`Importing ${String(files.length)} files on the device …`);
  await page.setInputFiles('input[type=file]', [...files]);
  await page.waitForSelector('[data-imported]', { state: 'attached', timeout: 120_000 });
  for (const line of await page.locator('[data-finding] summary').allTextContents())
    say(`  ${line.replaceAll(/\s+/g, ' ').trim()}`);
  const before = await agreement(device, demo, 'after the import');
  say(`${String(before.size)} documents are on device and server, same revisions.`);

  const move = moves.find(({ id, targetId }) => before.has(id) && before.has(targetId));
  if (!move) throw new Error(`The data holds none of the places to move: ${moves.map(({ id }) => id).join(', ')}.`);
  const plan = withFailures(await device.planMove(move.id, move.targetId), before, move.targetId);

  say('The server goes down: connections are refused.');
  await demo.setOutage(true);
  say(`Queueing ${String(plan.queued)} operations: ${move.id} and all below it to ${move.targetId} …`);
  await device.enqueueAndReloadMidway(plan.parts);
  const [midway] = (await device.until('the queue is read', 30, ({ bulkOperations }) => bulkOperations.length > 0))
    .bulkOperations;
  const cursor = midway?.cursor ?? 0;
  claims.that(
    cursor > 0 && cursor < plan.queued,
    `0 < cursor < ${String(plan.queued)} after the reload: ${String(cursor)}`,
  );
  say(`Reloaded at ${String(cursor)} of ${String(plan.queued)}; going on.`);
  await device.start();

  const waiting = await device.until(
    'two attempts have failed on the outage',
    120,
    (state) => failedAttempts(state) >= 2,
  );
  claims.that(failedAttempts(waiting) >= 2, 'two attempts failed on the outage');
  say(`${String(failedAttempts(waiting))} attempts have failed on the outage. The server is back.`);
  await demo.setOutage(false);
  await device.syncNow();
  const settled = await device.until('all is settled', 300, (state) => isSettled(state) && isOver(state));

  say('Comparing device and server, document by document …');
  const result = await judge(device, demo, plan, before, settled, claims);
  say(`${String(plan.onPurpose.length)} operations were made to fail on purpose:`);
  for (const line of plan.onPurpose) say(`  ${line}`);
  return result;
}

/** Device and server hold the same documents in the same revisions, and that is awaited. */
async function agreement(device: Device, demo: RunningDemo, when: string): Promise<Map<string, StoredDocument>> {
  const here = await device.documents();
  const isThere = async (): Promise<boolean> => {
    const there = await allDocuments(demo.couch, demo.names.app);
    return [...here.keys()].every((id) => there.has(id));
  };
  await device.until(`the push is done ${when}`, 180, async (state) => isSettled(state) && (await isThere()));
  const found = differences(await device.documents(), await allDocuments(demo.couch, demo.names.app));
  if (found.length > 0) throw new Error(`Device and server differ ${when}: ${JSON.stringify(found.slice(0, 5))}`);
  return device.documents();
}

async function judge(
  device: Device,
  demo: RunningDemo,
  plan: OncePlan,
  before: ReadonlyMap<string, StoredDocument>,
  { status, bulkOperations, failures }: DeviceState,
  claims: Claims,
): Promise<Omit<OnceResult, 'seconds'>> {
  const here = await device.documents();
  const there = await allDocuments(demo.couch, demo.names.app);
  const found = differences(here, there);
  claims.same(found, [{ id: plan.refusedId, what: 'revision' }], 'differences between device and server');
  const refusedBefore = before.get(plan.refusedId);
  claims.same(there.get(plan.refusedId)?._rev, refusedBefore?._rev, 'the server’s revision of the refused person');
  claims.same(
    there.get(plan.refusedId)?.['parent'],
    refusedBefore?.['parent'],
    'the server’s place of the refused person',
  );
  claims.that(here.get(plan.refusedId)?._rev.startsWith('2-') === true, 'the device has the refused revision');
  claims.that(here.get(plan.refusedId)?.['parent'] === undefined, 'the refused person has no place on the device');
  checkMoves(plan, here, claims);

  const [bulk] = bulkOperations;
  if (!bulk || bulkOperations.length !== 1) throw new Error('There should be one bulk operation.');
  claims.same(failures.map(({ code }) => code).sort(), plan.codes, 'codes of the failures on the device');
  claims.same(bulk.failed, plan.codes.length, 'failed');
  claims.same(bulk.applied + bulk.alreadyApplied, plan.queued - plan.codes.length, 'applied');
  claims.same(bulk.state, 'done-with-failures', 'state');
  claims.same(bulk.cursor, plan.queued, 'cursor');

  const results = [...(await allDocuments(demo.couch, demo.names.results)).values()];
  const failed = results
    .filter(({ type }) => type === 'afield-failures')
    .flatMap(({ operations }) => operations as { code: string }[]);
  const reports = results.filter(({ type }) => type === 'afield-result');
  claims.same(reports.length, 1, 'results on the server');
  claims.same(failed.map(({ code }) => code).sort(), plan.codes, 'codes of the failures on the server');
  return {
    queued: plan.queued,
    applied: bulk.applied,
    alreadyApplied: bulk.alreadyApplied,
    failed: bulk.failed,
    attempts: bulk.attempts + status.push.attempts + status.results.attempts,
    serverResults: reports.length,
    serverFailedOperations: failed.length,
  };
}

/** Every operation that may work has done what it says: device and server could agree on something wrong. */
function checkMoves(plan: OncePlan, here: ReadonlyMap<string, StoredDocument>, claims: Claims): void {
  let wrong = 0;
  for (const { action, operations } of plan.parts) {
    const field = action === 'set-parent' ? 'parent' : 'contact';
    for (const operation of operations) {
      const doc = here.get(String(operation.id));
      if (doc && JSON.stringify(doc[field]) !== JSON.stringify(operation[field] ?? undefined)) wrong += 1;
    }
  }
  // The one whose guard does not fit stays where it was.
  claims.same(wrong, 1, 'documents on the device that are not as their operation says');
}

function failedAttempts({ status, bulkOperations }: DeviceState): number {
  const ofBatches = bulkOperations.reduce((sum, bulk) => sum + bulk.failedAttempts, 0);
  return ofBatches + status.push.failedAttempts + status.results.failedAttempts;
}

function isOver({ bulkOperations }: DeviceState): boolean {
  return (
    bulkOperations.length > 0 && bulkOperations.every(({ state }) => state.startsWith('done') || state === 'failed')
  );
}
