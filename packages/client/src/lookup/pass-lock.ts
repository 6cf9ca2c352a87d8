import type { Clock, Locks } from '../model/environment.js';

/** A tab that holds the lock and is not heard for so long is frozen, or dead: no write rests on the lock. */
const patienceMs = 5000;
/** For a lock that such a tab has held the last time: less than a query waits. */
const shortPatienceMs = 100;

export interface PassLockParts {
  /** Its name. */
  readonly lock: string;
  readonly locks: Locks;
  readonly clock: Clock;
  readonly closed: AbortSignal;
}

/**
 * The lock of those who write an index, held during a pass and never during a rest. Two tabs that write at once do no harm,
 * but read everything twice.
 */
export class PassLock {
  readonly #parts: PassLockParts;
  #heardAt = 0;
  /** Whoever holds the lock did not let go of it in time: until it is free again it is not waited for anew. */
  #isStuck = false;

  constructor(parts: PassLockParts) {
    this.#parts = parts;
  }

  /** Another tab works on the index. */
  heard(): void {
    this.#heardAt = this.#parts.clock.monotonic();
  }

  /** Runs the work while the lock is held, or without it where whoever holds it says nothing. */
  async held(work: () => Promise<void>): Promise<void> {
    const { locks, lock, clock, closed } = this.#parts;
    const impatient = new AbortController();
    let begun = false;
    const waitingSince = clock.monotonic();
    const patience = this.#isStuck ? shortPatienceMs : patienceMs;
    const look = (): void => {
      const quiet = clock.monotonic() - Math.max(waitingSince, this.#heardAt);
      if (quiet >= patience) impatient.abort();
      else timer = clock.setTimer(look, patience - quiet);
    };
    let timer = clock.setTimer(look, patience);
    const giveUp = (): void => {
      impatient.abort();
    };
    closed.addEventListener('abort', giveUp);
    const run = async (): Promise<void> => {
      begun = true;
      clock.clearTimer(timer);
      await work();
    };
    try {
      await locks.request(lock, impatient.signal, () => {
        this.#isStuck = false;
        return run();
      });
    } catch (error) {
      if (begun || closed.aborted) throw error;
      this.#isStuck = true;
      await run();
    } finally {
      clock.clearTimer(timer);
      closed.removeEventListener('abort', giveUp);
    }
  }
}
