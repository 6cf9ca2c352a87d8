import { clampFloor } from '../retry/ramp.js';

/**
 * Milliseconds that a server asks us to stay away: `Retry-After` in seconds, or a date judged against the answer's
 * own `Date` (our clock may be wrong), at most one hour. 0 when it asks nothing. Source: R13, RFC 9110 10.2.3.
 */
export function notBefore(retryAfter: string | null, date: string | null, nowWall: number): number {
  if (retryAfter === null) return 0;
  const text = retryAfter.trim();
  if (/^\d+$/.test(text)) return clampFloor(Number(text) * 1000);
  const until = httpDate(text);
  if (until === undefined) return 0;
  const answeredAt = date === null ? undefined : httpDate(date);
  return clampFloor(until - (answeredAt ?? nowWall));
}

/** `Date.parse` alone takes nearly anything for a date, `-5` too. */
function httpDate(text: string): number | undefined {
  const time = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(time) ? undefined : time;
}
