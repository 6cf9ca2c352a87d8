import type { Connectivity } from '../model/environment.js';
import { beginWait } from '../retry/wait.js';
import type { Scheduler } from '../retry/scheduler.js';
import type { Clock } from '../model/environment.js';
import type { Session } from '../http/session.js';

const probeEveryMs = 5 * 60_000;
/** So long nothing is shown while the app is asked for credentials: it may answer at once. */
export const quietMs = 1000;
/** An app that had no credentials may have been unable to fetch them: it is asked again, as slowly as the ramp. */
const askAgainMs = 5 * 60_000;

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

  /** `asking`: the app is asked for credentials and may answer at once; nothing is shown for a second. */
  state(): 'open' | 'asking' | 'waiting-auth' | 'waiting-network' {
    if (this.#connectivity.online()) this.#probing = false;
    else if (!this.#probing && !this.#session.isRefused) return this.#waitForProbe();
    if (this.#session.isReady()) {
      this.#scheduler.clear('sign-in');
      return 'open';
    }
    const asking = this.#session.isRefused ? undefined : this.#session.askingForMs;
    if (this.#session.askFailed && !this.#scheduler.isWaiting('ask-again')) {
      this.#scheduler.wait('ask-again', beginWait(this.#clock, askAgainMs), () => {
        this.#session.reconsider();
        this.#poke();
      });
    }
    if (asking === undefined || asking >= quietMs) return 'waiting-auth';
    if (!this.#scheduler.isWaiting('sign-in')) {
      this.#scheduler.wait('sign-in', beginWait(this.#clock, quietMs), this.#poke);
    }
    return 'asking';
  }

  /** Whether someone else is signed in than the person whose work this is: then nothing of it runs, here or there (S7). */
  get isOtherUser(): boolean {
    return this.#session.refusedAs === 'other-user';
  }

  /** Whether the network may be tried, whoever is signed in. */
  network(): 'open' | 'waiting-network' {
    if (this.#connectivity.online()) this.#probing = false;
    else if (!this.#probing) return this.#waitForProbe();
    return 'open';
  }

  #waitForProbe(): 'waiting-network' {
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
    // From now on, not from the end of the ramp: the two would add up to ten minutes.
    if (!this.#connectivity.online()) this.#waitForProbe();
  }
}
