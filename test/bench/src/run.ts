/*
 * npm run bench [-- ROUNDS [index]]    budgets as ratios, measured side by side in one run, in Chromium on disk:
 * of bulk operations, or of a local index against a PouchDB view (50,000 documents: about two minutes a round)
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
import { median, type Times } from './measure.js';

/** What is measured, against what, and the most that it may be: times that, or milliseconds where there is no other. */
type Budget = readonly [name: string, base: string | undefined, most: number];

interface Part {
  /** The file of the page. */
  readonly page: string;
  /** What one round asks of it, in this order. */
  readonly steps: (round: number) => readonly string[];
  readonly budgets: readonly Budget[];
}

const parts: Readonly<Record<string, Part>> = {
  operations: {
    page: 'page.ts',
    steps: () => ['round'],
    budgets: [
      ['enqueue 10,000 operations', 'raw IndexedDB, a record per operation', 0.5],
      ['apply 10,000 set-parent', 'bare loop in hundreds', 1.4],
      ['open with 100,000 pending in 10', 'open an empty PouchDB', 1.5],
    ],
  },
  index: {
    page: 'index-page.ts',
    // Who reads first warms the browser's caches for the other: they take turns.
    steps: (round) => ['seed', ...(round % 2 === 0 ? ['index', 'view'] : ['view', 'index']), 'read'],
    budgets: [
      ['index 50,000 documents', 'PouchDB view of 50,000 documents', 0.2],
      ['query the index by key', 'query the view by key', 0.2],
      ['query the index after a write', 'query the view after a write', 0.5],
      ['longest task while indexing', undefined, 50],
    ],
  },
};

const rounds = Number(process.argv[2] ?? '5');
const part = parts[process.argv[3] ?? 'operations'];
if (part === undefined || !(rounds >= 1))
  throw new Error(`npm run bench [-- ROUNDS [${Object.keys(parts).join('|')}]]`);
const usual = '/usr/bin/chromium';

async function pageCode(file: string): Promise<string> {
  const entry = fileURLToPath(new URL(`../src/${file}`, import.meta.url));
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

const code = await pageCode(part.page);
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
    const times: Times = {};
    for (const step of part.steps(number)) {
      // A page of its own for each step: what the last one left in memory does not count.
      await page.goto(address);
      Object.assign(
        times,
        await page.evaluate(([asked, nth]) => window.benchSteps[asked]?.(nth), [step, number] as const),
      );
    }
    all.push(times);
    process.stderr.write(`round ${String(number + 1)} of ${String(rounds)}\n`);
  }
  const names = Object.keys(all[0] ?? {});
  for (const name of names) {
    const values = all.map((times) => times[name] ?? NaN);
    console.log(`${name.padEnd(42)} ${median(values).toFixed(1).padStart(9)} ms`);
  }
  for (const [name, base, most] of part.budgets) {
    const value = median(all.map((times) => (times[name] ?? NaN) / (base === undefined ? 1 : (times[base] ?? NaN))));
    const unit = base === undefined ? 'ms' : '×';
    console.log(
      `${value <= most ? 'within' : 'OVER  '}  ${name}: ${value.toFixed(2)} ${unit}${base === undefined ? '' : ` ${base}`} (budget ${String(most)} ${unit})`,
    );
  }
} finally {
  await browser.close();
  server.close();
  await rm(profile, { recursive: true, force: true });
}
