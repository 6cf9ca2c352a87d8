import { ManualClock } from '../retry/manual-clock.fixture.js';
import { Watch } from './watch.js';

/** A watch that gives nothing up. */
export function quietWatch(): Watch {
  return new Watch({ clock: new ManualClock(), closed: new AbortController().signal, changed: () => undefined });
}
