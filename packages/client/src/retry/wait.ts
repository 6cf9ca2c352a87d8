import type { Clock } from '../model/environment.js';

/** How long something is to wait. Units: milliseconds. */
export interface Delay {
  readonly delayMs: number;
  /** The part of the delay that no event can shorten (R13). */
  readonly notBeforeMs: number;
  /**
   * So much after that floor it starts although an event came before: such events are frequent, and would bring all whom a
   * server has put off back in the same second. An event after the floor starts it at once (R14). Absent: 0.
   */
  readonly floorSpreadMs?: number | undefined;
}

/** How long something waits, as it is stored. */
export interface StoredWait extends Delay {
  /** Wall clock when it was set. */
  readonly setAt: number;
}

/** A wait on both clocks: due when either shows that the delay has passed (R18). */
export interface Wait extends StoredWait {
  readonly setAtMonotonic: number;
}

/** `delay` in milliseconds, where no part of it is a floor. */
export function beginWait(clock: Clock, delay: Delay | number): Wait {
  const { delayMs, notBeforeMs, floorSpreadMs } =
    typeof delay === 'number' ? { delayMs: delay, notBeforeMs: 0, floorSpreadMs: 0 } : delay;
  return {
    delayMs: Math.max(delayMs, notBeforeMs),
    notBeforeMs,
    ...(floorSpreadMs === undefined || floorSpreadMs === 0 ? {} : { floorSpreadMs }),
    setAt: clock.wall(),
    setAtMonotonic: clock.monotonic(),
  };
}

/** What is stored of a wait. */
export function storedWait({ delayMs, setAt, notBeforeMs, floorSpreadMs }: Wait): StoredWait {
  return { delayMs, setAt, notBeforeMs, ...(floorSpreadMs === undefined ? {} : { floorSpreadMs }) };
}

/** After a restart the monotonic clock says nothing: what remains is between nothing and the whole delay (R18). */
export function resumeWait(clock: Clock, stored: StoredWait): Wait {
  const passed = clock.wall() - stored.setAt;
  return beginWait(clock, {
    ...stored,
    delayMs: clamp(stored.delayMs - passed, stored.delayMs),
    notBeforeMs: clamp(stored.notBeforeMs - passed, stored.notBeforeMs),
  });
}

/** Milliseconds until the wait is due; 0 when it is. */
export function remaining(clock: Clock, wait: Wait): number {
  return clamp(wait.delayMs - passedSince(clock, wait), wait.delayMs);
}

/**
 * The same wait cut short by an event: what no event can shorten remains with its spread; else it is due, after a random
 * moment (R2, R13, R14).
 */
export function shortened(clock: Clock, wait: Wait, spreadMs: number): Wait {
  const floor = clamp(wait.notBeforeMs - passedSince(clock, wait), wait.notBeforeMs);
  const rest = remaining(clock, wait);
  const earliest = floor > 0 ? floor + (wait.floorSpreadMs ?? 0) : 0;
  return beginWait(clock, { ...wait, delayMs: Math.min(rest, Math.max(earliest, spreadMs)), notBeforeMs: floor });
}

function passedSince(clock: Clock, wait: Wait): number {
  return Math.max(clock.wall() - wait.setAt, clock.monotonic() - wait.setAtMonotonic);
}

function clamp(value: number, most: number): number {
  return Math.min(Math.max(value, 0), most);
}
