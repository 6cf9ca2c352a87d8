/*
 * npm run simulate:fleet [-- CLIENTS]    a fleet that meets an outage, with and without jitter: docs/fleet.md, docs/fleet.svg
 *
 * Exit code 1 when jitter does not keep the clients apart, or not all is delivered. With another number of clients than
 * usual the figures are printed and nothing is written.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { broken, figuresOf } from './figures.js';
import { simulateFleet, type FleetRun } from './fleet.js';
import { page } from './page.js';
import { plot } from './plot.js';

const usual = 1000;
const clients = Number(process.argv[2] ?? usual);
if (!Number.isInteger(clients) || clients < 1) throw new RangeError('The number of clients is a whole number above 0.');

const options = { clients, outageMinutes: 30, watchedMinutes: 42, seed: 1 };
const exact = await simulateFleet({ ...options, jitter: 0 });
const spread = await simulateFleet({ ...options, jitter: 0.2 });
for (const run of [exact, spread]) {
  process.stdout.write(`jitter ${String(run.options.jitter)}: ${JSON.stringify(figuresOf(run))}\n`);
}

if (clients === usual) {
  const svg = plot([
    { title: `Without jitter: ${peaksOf(exact)}`, colour: '#b3261e', run: exact },
    { title: `With jitter of 0 to 20 %: ${peaksOf(spread)}`, colour: '#1f5fa8', run: spread },
  ]);
  await write('fleet.svg', svg);
  const path = docs('fleet.md');
  await write('fleet.md', await format(page(spread, exact), { ...(await resolveConfig(path)), filepath: path }));
}

const wrong = broken(spread, exact);
for (const line of wrong) process.stderr.write(`✖ ${line}\n`);
process.exitCode = wrong.length === 0 ? 0 : 1;

function peaksOf(run: FleetRun): string {
  const { peakAway, peakBack } = figuresOf(run);
  const [away, back] = [peakAway, peakBack].map((count) => count.toLocaleString('en'));
  return `at most ${String(away)} after the first second, ${String(back)} when the server is back`;
}

function docs(name: string): string {
  return fileURLToPath(new URL(`../../../docs/${name}`, import.meta.url));
}

async function write(name: string, text: string): Promise<void> {
  const before = await readFile(docs(name), 'utf8').catch(() => undefined);
  if (before !== text) await writeFile(docs(name), text);
  process.stdout.write(`docs/${name} is ${before === text ? 'as it was' : 'written'}.\n`);
}
