import type { Clock } from '../model/environment.js';

/** How long something waits, as it is stored. Units: milliseconds. */
export interface StoredWait {
  /** The delay when it was set. */
  readonly delayMs: number;
  /** Wall clock when it was set. */
  readonly setAt: number;
  /** The part of the delay that no event can shorten (R13). */
  readonly notBeforeMs: number;
}

/** A wait on both clocks: due when either shows that the delay has passed (R18). */
export interface Wait extends StoredWait {
  readonly setAtMonotonic: number;
}

export function beginWait(clock: Clock, delayMs: number, notBeforeMs = 0): Wait {
  const delay = Math.max(delayMs, notBeforeMs);
  return { delayMs: delay, notBeforeMs, setAt: clock.wall(), setAtMonotonic: clock.monotonic() };
}

/** What is stored of a wait. */
export function storedWait({ delayMs, setAt, notBeforeMs }: Wait): StoredWait {
  return { delayMs, setAt, notBeforeMs };
}

/** After a restart the monotonic clock says nothing: what remains is between nothing and the whole delay (R18). */
export function resumeWait(clock: Clock, stored: StoredWait): Wait {
  const passed = clock.wall() - stored.setAt;
  return beginWait(
    clock,
    clamp(stored.delayMs - passed, stored.delayMs),
    clamp(stored.notBeforeMs - passed, stored.notBeforeMs),
  );
}

/** Milliseconds until the wait is due; 0 when it is. */
export function remaining(clock: Clock, wait: Wait): number {
  return clamp(wait.delayMs - passedSince(clock, wait), wait.delayMs);
}

/** The same wait cut short by an event: what no event can shorten remains, and a random moment is added (R2, R14). */
export function shortened(clock: Clock, wait: Wait, spreadMs: number): Wait {
  const floor = clamp(wait.notBeforeMs - passedSince(clock, wait), wait.notBeforeMs);
  const rest = remaining(clock, wait);
  return beginWait(clock, Math.min(rest, Math.max(floor, spreadMs)), floor);
}

function passedSince(clock: Clock, wait: Wait): number {
  return Math.max(clock.wall() - wait.setAt, clock.monotonic() - wait.setAtMonotonic);
}

function clamp(value: number, most: number): number {
  return Math.min(Math.max(value, 0), most);
}
