/*
 * npm run bench [-- ROUNDS]    the budgets of DESIGN as ratios, measured side by side in one run, in Chromium on disk
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromiumArguments } from '@afield/demo-app/host';
import { chromium } from 'playwright-core';
import { build } from 'vite';
import type { Times } from './page.js';

/** What is measured, against what, and the most that it may be. */
const budgets = [
  ['enqueue 10,000 operations', 'raw IndexedDB, a record per operation', 0.5],
  ['apply 10,000 set-parent', 'bare loop in hundreds', 1.4],
  ['open with 100,000 pending in 10', 'open an empty PouchDB', 1.5],
] as const;

const rounds = Number(process.argv[2] ?? '5');
const usual = '/usr/bin/chromium';

async function pageCode(): Promise<string> {
  const entry = fileURLToPath(new URL('../src/page.ts', import.meta.url));
  const result = await build({
    configFile: false,
    logLevel: 'silent',
    define: { global: 'globalThis' },
    build: { write: false, target: 'esnext', lib: { entry, formats: ['es'], fileName: 'page' } },
  });
  const [output] = Array.isArray(result) ? result : [result];
  if (output === undefined || !('output' in output)) throw new Error('vite built nothing.');
  return output.output[0].code;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

const code = await pageCode();
const server = createServer((request, response) => {
  const isCode = request.url === '/page.js';
  response.setHeader('content-type', isCode ? 'text/javascript' : 'text/html');
  response.end(isCode ? code : '<!doctype html><meta charset="utf-8"><script type="module" src="/page.js"></script>');
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const address = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
const profile = await mkdtemp(join(tmpdir(), 'afield-bench-'));
const browser = await chromium.launchPersistentContext(profile, {
  args: [...chromiumArguments],
  ...(existsSync(usual) ? { executablePath: usual } : {}),
});
try {
  const page = await browser.newPage();
  const all: Times[] = [];
  for (let number = 0; number < rounds; number++) {
    // A page of its own for each round: what the last one left in memory does not count.
    await page.goto(address);
    all.push(await page.evaluate((round) => window.benchRound(round), number));
    process.stderr.write(`round ${String(number + 1)} of ${String(rounds)}\n`);
  }
  const names = Object.keys(all[0] ?? {});
  for (const name of names) {
    const values = all.map((times) => times[name] ?? NaN);
    console.log(`${name.padEnd(42)} ${median(values).toFixed(1).padStart(9)} ms`);
  }
  for (const [name, base, most] of budgets) {
    const ratio = median(all.map((times) => (times[name] ?? NaN) / (times[base] ?? NaN)));
    console.log(
      `${ratio <= most ? 'within' : 'OVER  '}  ${name}: ${ratio.toFixed(2)} × ${base} (budget ${String(most)} ×)`,
    );
  }
} finally {
  await browser.close();
  server.close();
  await rm(profile, { recursive: true, force: true });
}
