import type { Connectivity } from '../model/environment.js';
import { beginWait } from '../retry/wait.js';
import type { Scheduler } from '../retry/scheduler.js';
import type { Clock } from '../model/environment.js';
import type { Session } from '../http/session.js';

const probeEveryMs = 5 * 60_000;

/**
 * Whether work that needs the server may be tried now. While the browser says offline only a slow probe goes out,
 * because a browser can be wrong (R14).
 */
export class Gate {
  readonly #session: Session;
  readonly #connectivity: Connectivity;
  readonly #scheduler: Scheduler;
  readonly #clock: Clock;
  readonly #poke: () => void;
  #probing = false;

  constructor(parts: {
    session: Session;
    connectivity: Connectivity;
    scheduler: Scheduler;
    clock: Clock;
    poke: () => void;
  }) {
    this.#session = parts.session;
    this.#connectivity = parts.connectivity;
    this.#scheduler = parts.scheduler;
    this.#clock = parts.clock;
    this.#poke = parts.poke;
  }

  state(): 'open' | 'waiting-auth' | 'waiting-network' {
    if (this.#connectivity.online()) {
      this.#probing = false;
      return this.#session.isReady() ? 'open' : 'waiting-auth';
    }
    if (this.#probing) return this.#session.isReady() ? 'open' : 'waiting-auth';
    if (!this.#scheduler.isWaiting('probe')) {
      this.#scheduler.wait('probe', beginWait(this.#clock, probeEveryMs), () => {
        this.#probing = true;
        this.#poke();
      });
    }
    return 'waiting-network';
  }

  /** The network did not answer: the next probe is due in five minutes. */
  failed(): void {
    this.#probing = false;
  }
}
