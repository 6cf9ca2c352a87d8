import { describe, expect, it } from 'vitest';
import { knownScripts } from './property/known-scripts.js';
import { holds } from './property/laws.js';
import { checkProperty, chosenSeed, reportOf, runsPerSeed } from './property/property.js';

describe('bulk operations under outages, refusals, kills, clock jumps and other editors', () => {
  it('R1 R3 R4 R6 R7 R8 R9 R10 R11 R12 R15 R17 R18 come to the end that a plain model predicts', async () => {
    const seed = chosenSeed();
    const { failure } = await checkProperty(seed, runsPerSeed);
    if (failure !== undefined) expect.fail(reportOf(seed, failure));
  }, 120_000);

  it.each(knownScripts)('%s', async (_title, script) => {
    await holds(script);
  });
});
