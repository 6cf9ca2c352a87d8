import type { FleetRun } from './fleet.js';

/** With jitter a second may have this share of the requests of the busiest second without it, and no more. */
export const mostOfPeak = 1 / 3;
/** Two steps of five minutes, each with 20 % jitter. Seconds. */
const twoSteps = 2 * 5 * 60;

/** What the server's address saw of one run. Requests a second, and seconds. */
export interface Figures {
  /** The second in which all meet the outage: the first try of each, and its retry at once (R2). */
  readonly firstSecond: number;
  /** The busiest second of the ramp while the server is away: from the second after the first one. */
  readonly peakAway: number;
  /** The busiest second after the server is back: tries that find it, and the work that they then do. */
  readonly peakBack: number;
  readonly total: number;
  readonly delivered: number;
  /** After the server was back, when the last client was done; undefined: some never were. */
  readonly lastDeliveredAfter: number | undefined;
}

export function figuresOf({ options, perSecond, deliveredAt }: FleetRun): Figures {
  const back = options.outageMinutes * 60;
  const times = deliveredAt.filter((at) => at !== undefined);
  return {
    firstSecond: perSecond[0] ?? 0,
    peakAway: Math.max(...perSecond.slice(1, back)),
    peakBack: Math.max(...perSecond.slice(back)),
    total: perSecond.reduce((sum, count) => sum + count, 0),
    delivered: times.length,
    lastDeliveredAfter: times.length < options.clients ? undefined : Math.max(...times) - back,
  };
}

/** What must hold of a run with jitter beside the same one without, and does not; in words. */
export function broken(spread: FleetRun, exact: FleetRun): string[] {
  const [withJitter, without] = [figuresOf(spread), figuresOf(exact)];
  const wrong: string[] = [];
  for (const [name, when] of [
    ['peakAway', 'while the server is away'],
    ['peakBack', 'after the server is back'],
  ] as const) {
    if (withJitter[name] <= without[name] * mostOfPeak) continue;
    wrong.push(
      `The peak ${when} is ${String(withJitter[name])} requests a second with jitter, more than a third of ` +
        `${String(without[name])} without.`,
    );
  }
  for (const { options, deliveredAt } of [spread, exact]) {
    const { lastDeliveredAfter } = figuresOf({ options, deliveredAt, perSecond: [] });
    const most = twoSteps * (1 + options.jitter);
    if (lastDeliveredAfter !== undefined && lastDeliveredAfter <= most) continue;
    const done = deliveredAt.filter((at) => at !== undefined).length;
    wrong.push(
      `With jitter ${String(options.jitter)} not all was delivered ${String(most)} s after the server was back: ` +
        `${String(done)} of ${String(options.clients)}, the last after ${String(lastDeliveredAfter)} s.`,
    );
  }
  return wrong;
}

/** Requests of a minute: all of them, and those of its busiest second. */
export interface Minute {
  readonly minute: number;
  readonly total: number;
  readonly peak: number;
}

export function minutesOf({ perSecond }: FleetRun): Minute[] {
  return Array.from({ length: Math.ceil(perSecond.length / 60) }, (_, minute) => {
    const seconds = perSecond.slice(minute * 60, (minute + 1) * 60);
    return { minute, total: seconds.reduce((sum, count) => sum + count, 0), peak: Math.max(...seconds) };
  });
}
