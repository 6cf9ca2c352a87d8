import { simulateLargeFleet, type LargeFleetOptions, type LargeFleetRun } from './large-fleet.js';
import { table } from './markdown.js';

const outageS = 30 * 60;
const watchedAfterS = 2 * 3600;
/** Servers that need so many seconds for one request of each device. */
const servers = [100, 1000];
const base = { outageS, seed: 1 };

/** Ways that a fleet may meet an outage, by the heading of their column. */
const spreads: readonly (readonly [string, Partial<LargeFleetOptions>])[] = [
  ['without jitter', { jitter: 0 }],
  ['with jitter', { jitter: 0.2 }],
  ['with jitter, work comes over the outage', { jitter: 0.2, withinS: outageS }],
];
const limits: readonly (readonly [string, Partial<LargeFleetOptions>])[] = [
  ['without jitter', { jitter: 0 }],
  ['with jitter', { jitter: 0.2 }],
  ['with jitter, `Retry-After: 60`', { jitter: 0.2, retryAfterS: 60 }],
  ['with jitter, `Retry-After: 900`', { jitter: 0.2, retryAfterS: 900 }],
];

/** Told of each run when it is over. */
export type Ran = (run: LargeFleetRun) => void;

/** Requests a second at an outage, for fleets of these sizes. Markdown. */
export function peaksTable(sizes: readonly number[], ran: Ran): string {
  const rows = sizes.flatMap((devices) => {
    const runs = spreads.map(([, how]) => {
      const run = simulateLargeFleet({ jitter: 0, devices, ...base, watchedS: outageS + 900, ...how });
      ran(run);
      return run;
    });
    const row = (name: string, value: (run: LargeFleetRun) => string): string[] => [
      shown(devices),
      name,
      ...runs.map(value),
    ];
    return [
      row('the first second', ({ perSecond }) => shown(perSecond[0] ?? 0)),
      row('peak while the server is away, from the second after', ({ perSecond }) =>
        shown(peak(perSecond, 1, outageS)),
      ),
      row('peak after the server is back', ({ perSecond }) => shown(peak(perSecond, outageS, perSecond.length))),
      row('all requests together', ({ perSecond }) => shown(perSecond.reduce((sum, count) => sum + count, 0))),
      row('the last device, after the server is back', lastOf),
    ];
  });
  return table(['devices', 'requests in one second', ...spreads.map(([name]) => name)], rows, 2);
}

/** When all is delivered by a server that is too slow for all at once. Markdown. */
export function ratesTable(sizes: readonly number[], ran: Ran): string {
  const rates = sizes.flatMap((devices) => servers.map((seconds) => [devices, devices / seconds] as const));
  // A device needs two requests in one second.
  const rows = rates.flatMap(([devices, ratePerSecond]) =>
    ratePerSecond < 2 ? [] : [ratesRow(devices, ratePerSecond, ran)],
  );
  return table(['devices', 'rate', 'least possible', ...limits.map(([name]) => name)], rows, 0);
}

function ratesRow(devices: number, ratePerSecond: number, ran: Ran): string[] {
  const times = limits.map(([, how]) => {
    const watchedS = outageS + watchedAfterS;
    const run = simulateLargeFleet({ jitter: 0, devices, ...base, watchedS, ratePerSecond, ...how });
    ran(run);
    return lastOf(run);
  });
  return [shown(devices), shown(ratePerSecond), `${shown((devices * 2) / ratePerSecond)} s`, ...times];
}

/** After the server was back, when the last one was done; how many were, where not all were. */
function lastOf({ options, delivered, lastAt }: LargeFleetRun): string {
  if (delivered < options.devices) {
    const hours = (options.watchedS - options.outageS) / 3600;
    return `${((100 * delivered) / options.devices).toFixed(1)} % after ${String(hours)} h`;
  }
  return `${shown(Math.max(0, Math.ceil((lastAt ?? 0) - options.outageS)))} s`;
}

function peak(perSecond: Float64Array, from: number, to: number): number {
  let most = 0;
  for (let at = from; at < to; at++) most = Math.max(most, perSecond[at] ?? 0);
  return most;
}

const shown = (count: number): string => count.toLocaleString('en', { maximumFractionDigits: 1 });
