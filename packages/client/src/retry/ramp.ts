const minute = 60_000;

/**
 * The waiting time in milliseconds after so many failed attempts in a row (1, 2 …): none, then 1, 2, 3, 4, 5 minutes,
 * then 5 minutes for ever. Source: R2.
 */
export function rampOfR2(failures: number): number {
  return Math.min(Math.max(failures - 1, 0), 5) * minute;
}

/** The waiting time with a random share on top, added after the cap so that a fleet never meets on one tick (R2). */
export function withJitter(delayMs: number, share: number, random: number): number {
  return Math.round(delayMs * (1 + share * random));
}

const hour = 60 * minute;

/** A floor in milliseconds as it may be used: at most one hour, none where it is no number (R13). */
export function clampFloor(notBeforeMs: number): number {
  return Number.isNaN(notBeforeMs) ? 0 : Math.min(Math.max(notBeforeMs, 0), hour);
}

/**
 * A replaced ramp as it may be used: a hook of the app can make neither a loop without delay nor a wait without end.
 * Only the first retry may come at once.
 */
export function clampDelay(delayMs: number, failures: number): number {
  if (!Number.isFinite(delayMs)) return rampOfR2(failures);
  const least = failures <= 1 ? 0 : 1000;
  return Math.min(Math.max(delayMs, least), 24 * hour);
}
