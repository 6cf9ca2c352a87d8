const mostMs = 3_600_000;

/**
 * Milliseconds that a server asks us to stay away: `Retry-After` in seconds, or a date judged against the answer's
 * own `Date` (our clock may be wrong), at most one hour. 0 when it asks nothing. Source: R13, RFC 9110 10.2.3.
 */
export function notBefore(retryAfter: string | null, date: string | null, nowWall: number): number {
  if (retryAfter === null) return 0;
  const text = retryAfter.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, mostMs);
  const until = Date.parse(text);
  if (Number.isNaN(until)) return 0;
  const answeredAt = date === null ? NaN : Date.parse(date);
  return Math.min(Math.max(until - (Number.isNaN(answeredAt) ? nowWall : answeredAt), 0), mostMs);
}
