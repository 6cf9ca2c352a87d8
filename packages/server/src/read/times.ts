import { ServerCommandError } from '../errors.js';

const unitsMs = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** `90m`, `12h`, `7d`, `2w` in milliseconds; undefined when the text is no duration. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * unitsMs[unit as keyof typeof unitsMs];
}

/**
 * A time that a person has given: `2026-11-01`, `2026-11-01T08:00`, with an offset such as `Z` or `+02:00` or else in UTC, or
 * a duration before now.
 * @throws ServerCommandError with code `usage`
 */
export function timeMs(option: string, text: string, now: number): number {
  const before = durationMs(text);
  if (before !== undefined) return now - before;
  const isIso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text);
  const hasPlace = text.length === 10 || /(Z|[+-]\d\d:\d\d)$/.test(text.slice(10));
  const time = isIso ? Date.parse(hasPlace ? text : `${text}Z`) : NaN;
  if (!Number.isNaN(time)) return time;
  throw new ServerCommandError(
    'usage',
    `--${option} takes a date such as 2026-11-01, or a duration such as 7d or 12h.`,
  );
}

/** A time as text. A device with a clock gone mad gives times that no calendar has: these stay numbers. */
export function isoTime(ms: number): string | number {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : ms;
}
