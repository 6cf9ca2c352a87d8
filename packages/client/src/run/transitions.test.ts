import { describe, expect, it } from 'vitest';
import { applied, OutboxBed } from '../outbox/outbox-bed.fixture.js';
import { Control } from '../queue/control.js';
import { settledWith } from './transitions.js';

describe('a bulk operation that was cancelled in the middle of a batch', () => {
  it('O3 V1 counts each event of that batch once, when it is known what was done', async () => {
    const { tab, clock } = new OutboxBed();
    const header = await tab.append(['a', 'b', 'c']);
    await tab.outcome(header, [applied, { s: 'intent', a: 1 }, { s: 'open' }]);
    const cancelled = await new Control(tab.queue, clock).cancel(header.id);
    expect(cancelled).toMatchObject({ applied: 1, events: 1, unsettled: { applied: 0, events: 0 } });
    expect(settledWith(cancelled, [applied, applied, { s: 'open' }])).toMatchObject({ applied: 2, events: 2 });
  });
});
