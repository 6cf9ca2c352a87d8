import type { Observable } from 'rxjs';
import { ClientClosedError, NotDrainedError } from './model/errors.js';
import type { Drained } from './model/states.js';
import type { Parts } from './parts.js';
import { beginWait } from './retry/wait.js';
import { isMoving } from './sync/device.js';
import { deviceId } from './sync/result-documents.js';
import type { Work } from './work.js';

/** A tab that does not lead hears nothing of the results: it looks again so often while someone waits. */
const lookAgainMs = 5000;

/**
 * Waits until nothing is left to do, and the server has confirmed it (S11).
 *
 *   look ─ something failed ───────▶ NotDrainedError
 *    ▲  ├─ nothing left, proven ──▶ drained
 *    │  └─ else ─ waits for news ─┐        closed, aborted ─▶ rejected
 *    └────────────────────────────┘
 */
export class Draining {
  readonly #parts: Parts;
  readonly #work: Work;
  readonly #open: () => Promise<string>;
  readonly #changed$: Observable<unknown>;
  #waits = 0;

  constructor(
    parts: Parts,
    given: {
      work: Work;
      /** Resolves with the store's name when it is open. */
      open: () => Promise<string>;
      /** Emits when something has changed. */
      changed$: Observable<unknown>;
    },
  ) {
    this.#parts = parts;
    this.#work = given.work;
    this.#open = given.open;
    this.#changed$ = given.changed$;
  }

  async wait(signal: AbortSignal | undefined): Promise<Drained> {
    const { closed, scheduler, environment } = this.#parts;
    const key = `drained:${String(++this.#waits)}`;
    const news = new News();
    const tell = (): void => {
      news.tell();
    };
    const proof: Asked = { after: undefined };
    const subscription = this.#changed$.subscribe(tell);
    closed.addEventListener('abort', tell);
    signal?.addEventListener('abort', tell);
    try {
      for (;;) {
        if (signal?.aborted === true) throw signal.reason as Error;
        if (closed.aborted) throw new ClientClosedError();
        const drained = await this.#look(proof);
        if (drained !== undefined) return drained;
        if (!this.#work.isLeader) scheduler.wait(key, beginWait(environment.clock, lookAgainMs), tell);
        await news.next();
      }
    } finally {
      scheduler.clear(key);
      subscription.unsubscribe();
      closed.removeEventListener('abort', tell);
      signal?.removeEventListener('abort', tell);
    }
  }

  async #look(proof: Asked): Promise<Drained | undefined> {
    const { options } = this.#parts;
    const storeId = await this.#open();
    await this.#read();
    const known = this.#work.counts();
    if (known.failed + known.stopped + known.quarantined > 0) throw new NotDrainedError(known);
    if (this.#work.isLeader && options.results !== undefined && proof.after === undefined) {
      proof.after = (await this.#work.proof()).count;
      // Whether the server has still what it had; and what another page has edited is not heard of everywhere.
      this.#work.pullNow();
      await this.#parts.replication?.pushStep();
      this.#work.askProof();
    }
    if (isMoving(known) || known.unreported > 0) return undefined;
    const { drained, lastSequence } = await this.#work.progress();
    if (!drained) return undefined;
    if (options.results === undefined) return { asOf: lastSequence, document: undefined };
    const there = await this.#work.proof();
    // What this tab has asked for is newer than what was stored before.
    const isFresh = !this.#work.isLeader || (proof.after !== undefined && there.count > proof.after);
    if (!isFresh || !there.drained || there.asOf < lastSequence) {
      this.#work.askProof();
      return undefined;
    }
    return { asOf: there.asOf, document: deviceId(storeId) };
  }

  /** What others have stored: a tab that leads has it in memory. */
  async #read(): Promise<void> {
    const { queue, reports, quarantine, edits } = this.#parts;
    if (this.#work.isLeader) await quarantine.ready();
    else {
      reports.reread(await queue.refreshAll());
      edits.changed();
      await quarantine.load();
    }
    await edits.list();
  }
}

/** How many proofs there were when one was asked for. */
interface Asked {
  after: number | undefined;
}

/** News that came since it was last waited for are not lost. */
class News {
  #isTold = false;
  #wake: (() => void) | undefined;

  tell(): void {
    this.#isTold = true;
    this.#wake?.();
  }

  async next(): Promise<void> {
    if (!this.#isTold) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
    this.#isTold = false;
  }
}
