/* Finds a Chromium, or brings one. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createRequire } from 'node:module';
import { answerOf, root, run, say, StepError } from './run.mjs';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Path of a Chromium: the system's, else one from apt (as root), else Playwright's own. `AFIELD_CHROMIUM` goes first. */
export async function findBrowser() {
  const wanted = process.env.AFIELD_CHROMIUM;
  if (wanted) {
    if (existsSync(wanted)) return wanted;
    throw new StepError(`AFIELD_CHROMIUM names ${wanted}, which is not there.`);
  }
  const there = onPath() ?? playwrightBrowser();
  if (there) return there;
  const fromApt = await installWithApt();
  if (fromApt) return fromApt;
  say('Downloading Chromium with Playwright …');
  await run([process.execPath, playwrightCli(), 'install', 'chromium']);
  const downloaded = playwrightBrowser();
  if (downloaded) return downloaded;
  throw new StepError(
    'No Chromium: install the package "chromium" of your system, or set AFIELD_CHROMIUM to its path.',
  );
}

function onPath() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path));
}

async function installWithApt() {
  if (process.getuid?.() !== 0 || answerOf(['apt-get', '--version']) === undefined) return undefined;
  say('Installing Chromium with apt-get …');
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  if ((await run(['apt-get', 'update'], { quiet: true, env })) !== 0) return undefined;
  await run(['apt-get', 'install', '-y', '--no-install-recommends', 'chromium'], { quiet: true, env });
  return onPath();
}

function playwrightCli() {
  const require = createRequire(join(root, 'e2e', 'package.json'));
  return join(require.resolve('@playwright/test/package.json'), '..', 'cli.js');
}

/** Playwright's own browser, when it has been downloaded. */
function playwrightBrowser() {
  const require = createRequire(join(root, 'demo-app', 'package.json'));
  const path = require('playwright-core').chromium.executablePath();
  return path && existsSync(path) ? path : undefined;
}
