import { OtherStoreError } from './model/errors.js';
import type { Parts } from './parts.js';
import { beginWait } from './retry/wait.js';
import type { SharedStore } from './shared-store.js';
import { keepPresence } from './tabs/presence.js';
import { runNote } from './wipe.js';
import type { Work } from './work.js';

const watchEveryMs = 60_000;

/**
 * Whether this tab runs the queue.
 *
 *   start ─▶ waits for the lock ─▶ reads the store (on the ramp) ─▶ leads ─▶ closed
 */
export class Leadership {
  readonly #parts: Parts;
  readonly #store: SharedStore;
  readonly #work: Work;
  readonly #changed: () => void;
  readonly #announce: () => void;
  readonly #begun: () => void;
  #leading: Promise<void> | undefined;
  #openFailures = 0;
  /** The run that ended while a person was looking at its page (R16). */
  #before: { readonly stopped: string | undefined } | undefined;

  constructor(
    parts: Parts,
    given: {
      store: SharedStore;
      work: Work;
      /** Something that is shown has changed. */
      changed: () => void;
      /** Something new is durable. */
      announce: () => void;
      /** This tab leads, and what the last run left is taken up. */
      begun: () => void;
    },
  ) {
    this.#parts = parts;
    this.#store = given.store;
    this.#work = given.work;
    this.#changed = given.changed;
    this.#announce = given.announce;
    this.#begun = given.begun;
  }

  /** Asks for the lock, and leads from the moment that it is ours until the client is closed. */
  start(): void {
    const { options, environment, closed } = this.#parts;
    const runUntilClosed = async (): Promise<void> => {
      // A store that is someone else's is for their tab to run.
      if (!(await this.#lead())) return;
      await aborted(closed);
      this.#work.endLead();
    };
    this.#leading = environment.locks.request(`afield:${options.name}`, closed, runUntilClosed).catch(async () => {
      if (closed.aborted) return;
      // No write rests on a single leader: without locks this tab runs all the same.
      environment.warn('The browser gives no lock. This tab runs the queue without one.');
      await runUntilClosed();
    });
  }

  /** Resolves when the lock is given back. */
  async ended(): Promise<void> {
    await this.#leading?.catch(() => undefined);
  }

  /**
   * This tab runs the queue from now on: what others stored meanwhile is read, and everything goes on. False: it does not,
   * because the store is not this client's.
   */
  async #lead(): Promise<boolean> {
    while (!this.#parts.closed.aborted) {
      try {
        await this.#store.open();
        await this.#goOn(await this.#store.read());
        return true;
      } catch (error) {
        if (error instanceof OtherStoreError) {
          this.#parts.environment.warn(error.message);
          return false;
        }
        await this.#waitForStore();
      }
    }
    return true;
  }

  async #goOn(storeId: string): Promise<void> {
    const { options, environment, lease, closed } = this.#parts;
    // Noted before anything runs. Once: at a second try, after the store has failed, it would find its own note.
    this.#before ??= { stopped: await keepPresence(environment.presence, runNote(options.name), lease, closed) };
    this.#work.lead(storeId);
    this.#changed();
    await this.#work.resume(storeId, this.#before.stopped, this.#announce);
    this.#watch();
    this.#begun();
  }

  /**
   * Every minute all that waits is looked at again, and what other tabs have stored: a message between tabs can get lost,
   * and nothing may wait for ever by mistake (R15).
   */
  #watch(): void {
    const { scheduler, environment } = this.#parts;
    scheduler.wait('watchdog', beginWait(environment.clock, watchEveryMs), () => {
      this.#watch();
      void this.#store.lookForChanged();
      this.#parts.indexes.poke();
      this.#parts.conflictWatch.poke();
    });
  }

  #waitForStore(): Promise<void> {
    const { environment, policy, scheduler, closed } = this.#parts;
    this.#openFailures++;
    environment.warn('The local store could not be opened. It is tried again.');
    const { delayMs } = policy.delay(this.#openFailures + 1, 0);
    return new Promise((resolve) => {
      void aborted(closed).then(resolve); // also when closing has begun before the opening failed
      scheduler.wait('store', beginWait(environment.clock, delayMs), resolve);
    });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
}
