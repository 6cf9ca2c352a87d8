import { describe, expect, it } from 'vitest';
import type { DocumentEvent } from '../model/event.js';
import { applied, nameOf, OutboxBed } from './outbox-bed.fixture.js';
import { PageEvents } from './page-events.js';

describe('the events of the page', () => {
  const heard = (page: PageEvents): string[] => {
    const names: string[] = [];
    page.events$.subscribe((event: DocumentEvent) => names.push(nameOf(event)));
    return names;
  };

  it('O8 what happens while older events are still told is told after them, once', async () => {
    const bed = new OutboxBed();
    const { tab } = bed;
    await tab.done(['x', 'a']);
    await tab.done(['x']);
    let turns = 0;
    const page = new PageEvents({
      queue: tab.queue,
      events: tab.events,
      closed: bed.closed,
      breathe: async () => {
        if (++turns > 1) return;
        const header = await tab.append(['x']);
        page.happened(
          header,
          { batch: { from: 0, operations: [{ id: 'x', key: `${header.key}:0`, origin: 'b' }] }, rows: [{ s: 'open' }] },
          [applied],
        );
        await tab.outcome(header, [applied]);
      },
    });
    const names = heard(page);
    await page.lead('s');
    expect(names).toEqual(['x@1:0', 'a@1:1', 'x@2:0', 'x@3:0']);
  });

  it('O7 tells after a restart only what came after the last note', async () => {
    const bed = new OutboxBed();
    const { tab } = bed;
    await tab.done(['a']);
    const parts = { queue: tab.queue, events: tab.events, closed: bed.closed, breathe: () => Promise.resolve() };
    await new PageEvents(parts).lead('s');
    await tab.done(['b']);
    const again = new PageEvents(parts);
    const names = heard(again);
    await again.lead('s');
    expect(names).toEqual(['b@2:0']);
  });
});
