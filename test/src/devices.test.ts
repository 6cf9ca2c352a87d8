import { describe, expect, it } from 'vitest';
import { runDevices } from './devices/run.js';

const plan = { seed: 1, devices: 3, operations: 40, documents: 12, foreign: false };

describe('devices that change the same documents amid outages', () => {
  it('S2 is red where nothing heals: conflicts stay, and operations that count are not in the documents', async () => {
    const { violations } = await runDevices({ plan, quick: true, break: 'no-heal' });
    expect(violations).toContainEqual(expect.stringMatching(/: server has a conflict, /));
    expect(violations).toContainEqual(
      expect.stringMatching(/ is applied .* the history of the winner .* does not hold it/),
    );
    expect(violations).toContainEqual(expect.stringMatching(/ has deleted the document, and .* is there/));
  }, 60_000);
});
