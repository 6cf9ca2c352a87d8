import { describe, expect, it } from 'vitest';
import { giveUp } from '../model/own-revisions.js';
import { withoutWithheld, type WithholdingParts } from './withheld.js';

const unasked = (): never => {
  throw new TypeError('Nothing of this is to be asked for.');
};

describe('what is withheld from the server', () => {
  const parts: WithholdingParts = {
    local: { readRevisions: () => Promise.resolve([]), leaves: unasked, writeRevisions: unasked },
    server: { missing: unasked },
    refusals: { givenUp: () => Promise.resolve(new Map()) },
  };

  it('S2 the end of a refused branch is never sent: there it would delete the document that the branch began from', async () => {
    const refused = { id: 'a', doc: { _id: 'a', _rev: '2-b' }, ancestors: ['2-b', '1-a'] };
    const end = String(giveUp(refused)['_rev']);
    expect(await withoutWithheld(parts, [{ id: 'a', revs: [end] }])).toEqual([]);
    expect(await withoutWithheld(parts, [{ id: 'a', revs: [end, '3-c'] }])).toEqual([{ id: 'a', revs: ['3-c'] }]);
  });
});
