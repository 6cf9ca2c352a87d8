import type { Publisher } from '../model/event.js';
import type { Tab } from '../outbox/outbox-bed.fixture.js';
import { RetryPolicy } from '../retry/policy.js';
import { rampOfR2 } from '../retry/ramp.js';
import { Publication, type PublicationParts } from './publication.js';

/** The publication of what a tab knows, to one place. */
export function publicationOf(tab: Tab, publisher: Publisher, more: Partial<PublicationParts> = {}): Publication {
  return new Publication({
    queue: tab.queue,
    events: tab.events,
    scheduler: tab.scheduler,
    policy: new RetryPolicy(rampOfR2, 0, () => 0),
    clock: tab.clock,
    gate: { state: () => 'open', failed: () => undefined },
    closed: tab.closed,
    changed: () => undefined,
    warn: () => undefined,
    publisher,
    storeId: 's',
    newId: () => 'mark',
    context: (attempt) => ({
      fetch,
      database: () => {
        throw new TypeError('There is no database.');
      },
      signal: tab.closed,
      attempt,
    }),
    missing: undefined,
    isPushed: () => true,
    pushStep: () => Promise.resolve(true),
    quarantine: () => Promise.resolve(),
    refresh: () => Promise.resolve(),
    ...more,
  });
}

/** Runs a publication until nothing more of it is due now. */
export async function published(publication: Publication): Promise<void> {
  publication.poke();
  for (let turn = 0; turn < 3; turn++) {
    await publication.idle();
    await Promise.resolve();
  }
}
