import { describe, expect, it } from 'vitest';
import { breaks } from './devices/breaks.js';
import { runDevices } from './devices/run.js';

const plan = { seed: 1, devices: 3, operations: 30, documents: 9, foreign: false };

describe('devices that change the same documents amid outages', () => {
  it.each([1, 2, 3, 4])(
    'S2 R17 three of them are equal in the end, no conflict is left, and what each says of its operations is true, seed %i',
    async (seed) => {
      const { violations, counts } = await runDevices({ plan: { ...plan, seed }, quick: true });
      expect(violations).toEqual([]);
      expect(counts['applied']).toBeGreaterThan(30);
      expect(counts['extra']).toBeGreaterThan(5); // there was something to heal
    },
    60_000,
  );

  it.each([
    ['a document made by two devices, of which the one that lost wins after all', 218],
    ['operations that failed when they were healed, and whose branch wins after all', 319],
    ['seven operations of one device that are healed in one revision', 87],
  ])(
    'S2 with %s, what each says of its operations is true, seed %i',
    async (_what, seed) => {
      const { violations } = await runDevices({ plan: { ...plan, operations: 20, documents: 5, seed }, quick: true });
      expect(violations).toEqual([]);
    },
    60_000,
  );

  it('S2 the same with PouchDB and a server over HTTP', async () => {
    const { violations, counts } = await runDevices({ plan: { ...plan, operations: 20 }, quick: false });
    expect(violations).toEqual([]);
    expect(counts['extra']).toBeGreaterThan(0);
  }, 60_000);

  it('S2 edits past the queue may stay as conflicts, and are shown then on every device', async () => {
    const { violations, counts } = await runDevices({ plan: { ...plan, foreign: true }, quick: true });
    expect(violations).toEqual([]);
    expect(counts['conflicts']).toBeGreaterThan(0);
  }, 60_000);

  it.each(Object.keys(breaks))(
    'S2 is red with the mistake %s',
    async (name) => {
      const { violations } = await runDevices({ plan, quick: true, break: name });
      expect(violations).not.toEqual([]);
    },
    60_000,
  );

  it('S2 is red where nothing heals: conflicts stay, and operations that count are not in the documents', async () => {
    const { violations } = await runDevices({ plan, quick: true, break: 'no-heal' });
    expect(violations).toContainEqual(expect.stringMatching(/: server has a conflict, /));
    expect(violations).toContainEqual(
      expect.stringMatching(/ is applied .* the history of the winner .* does not hold it/),
    );
    expect(violations).toContainEqual(expect.stringMatching(/ has deleted the document, and .* is there/));
  }, 60_000);
});
