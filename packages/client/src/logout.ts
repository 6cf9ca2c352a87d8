import { z } from 'zod/mini';
import type { Channel } from './model/environment.js';
import { AfieldError, UnsyncedWorkError } from './model/errors.js';
import type { WorkCounts } from './model/states.js';
import type { Parts } from './parts.js';
import type { WipeNote } from './queue/stored.js';
import { isNothing } from './sync/device.js';
import { documentsName, Wipe } from './wipe.js';
import type { Work } from './work.js';

/** So long other tabs have to say that they are there; and so long those that are have to close. */
const answerMs = 250;
const closingMs = 5000;

const said = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('leave') }),
  z.object({ kind: z.literal('here'), tab: z.string() }),
  z.object({ kind: z.literal('gone'), tab: z.string() }),
]);
type Said = z.infer<typeof said>;

export interface LogoutParts {
  readonly work: Work;
  /** Resolves when the store is open. */
  readonly open: () => Promise<unknown>;
  /** Resolves when no call is under way. */
  readonly settled: () => Promise<unknown>;
  /** Closes the client. */
  readonly close: () => Promise<void>;
}

/**
 * Takes leave of a store: closes it in all tabs, then removes it (S7).
 *
 *   count ─ work is left ─▶ UnsyncedWorkError
 *    ▲  └▶ note ─▶ other tabs close ─▶ count again ─▶ close ─▶ Wipe
 *    └──── something was queued meanwhile
 *
 * A tab that does not answer finds the note when it reads the store next, and its databases gone when it writes.
 */
export class Logout {
  readonly #parts: Parts;
  readonly #given: LogoutParts;
  readonly #wipe: Wipe;
  #channel: Channel | undefined;
  #isLeaving = false;
  /** Other tabs that have answered, and of these the ones that have closed. */
  readonly #here = new Set<string>();
  readonly #gone = new Set<string>();
  #heard: (() => void) | undefined;

  constructor(parts: Parts, given: LogoutParts) {
    this.#parts = parts;
    this.#given = given;
    this.#wipe = new Wipe(parts);
  }

  /** True from the moment that this tab takes leave: nothing new is taken in. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Hears when another tab takes leave. */
  listen(): void {
    const { environment, options } = this.#parts;
    this.#channel ??= environment.channel(`afield:${options.name}:leave`, (message) => {
      const heard = said.safeParse(message);
      if (heard.success) this.#hear(heard.data);
    });
  }

  /** An earlier logout was cut off: what it has left is removed. */
  finish(): Promise<void> {
    return this.#wipe.finish();
  }

  /** The store is being removed: this tab closes, and says so. */
  async leave(): Promise<void> {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#say({ kind: 'here', tab: this.#parts.tabLock.tab });
    await this.#given.close();
    this.#say({ kind: 'gone', tab: this.#parts.tabLock.tab });
    this.#channel?.close();
  }

  async run(force: boolean): Promise<void> {
    if (this.#isLeaving) throw new AfieldError('logging_out', 'logout() is under way already.');
    this.#isLeaving = true;
    try {
      await this.#wipe.alone(() => this.#run(force));
    } finally {
      this.#isLeaving = false;
      // A logout that was refused leaves the client open.
      if (this.#parts.closed.aborted) this.#channel?.close();
    }
  }

  close(): void {
    if (!this.#isLeaving) this.#channel?.close();
  }

  async #run(force: boolean): Promise<void> {
    const { queue, options, environment, queueStore } = this.#parts;
    await this.#given.open();
    await this.#given.settled();
    const given = { wipe: environment.newId(), documents: documentsName(options) };
    let note: WipeNote | undefined;
    while (note === undefined) {
      const counted = force ? Infinity : await this.#assertNothingLeft();
      // Undefined: another tab has queued something since it was counted.
      note = await queue.numbers.takeForNote(given, counted);
    }
    await this.#othersLeave();
    // Tabs of one process share their connection, and one of them has closed it.
    await queueStore.reopen();
    if (!force) {
      try {
        await this.#assertNothingLeft();
      } catch (error) {
        await queue.wipeNotes.remove(note);
        throw error;
      }
    }
    await this.#given.close();
    await queueStore.reopen();
    await this.#wipe.run(note);
  }

  /**
   * By what is stored, whatever this tab has in memory: another one may have done more. Answers with the number up to which
   * it was looked.
   */
  async #assertNothingLeft(): Promise<number> {
    const { queue, reports, quarantine, edits } = this.#parts;
    reports.reread(await queue.refreshAll());
    edits.changed();
    await edits.list();
    await quarantine.load();
    const { pending, failed, stopped, quarantined, unpublished, unreported, unconfirmed, lastSequence } =
      await this.#given.work.progress();
    const counts: WorkCounts = { pending, failed, stopped, quarantined, unpublished, unreported, unconfirmed };
    if (!isNothing(counts)) throw new UnsyncedWorkError(counts);
    return lastSequence;
  }

  async #othersLeave(): Promise<void> {
    const { environment } = this.#parts;
    this.#here.clear();
    this.#gone.clear();
    this.#say({ kind: 'leave' });
    await this.#wait(answerMs, () => false);
    const areGone = (): boolean => [...this.#here].every((tab) => this.#gone.has(tab));
    await this.#wait(closingMs, areGone);
    if (!areGone()) environment.warn('Another tab does not close. What it holds is removed when it ends.');
  }

  /** Until it is so, at most so long. */
  #wait(atMostMs: number, isSo: () => boolean): Promise<void> {
    const { clock } = this.#parts.environment;
    return new Promise((resolve) => {
      if (isSo()) {
        resolve();
        return;
      }
      const end = (): void => {
        clock.clearTimer(timer);
        this.#heard = undefined;
        resolve();
      };
      const timer = clock.setTimer(end, atMostMs);
      this.#heard = () => {
        if (isSo()) end();
      };
    });
  }

  #hear(message: Said): void {
    switch (message.kind) {
      case 'leave':
        void this.leave();
        return;
      case 'here':
        this.#here.add(message.tab);
        break;
      case 'gone':
        this.#here.add(message.tab);
        this.#gone.add(message.tab);
    }
    this.#heard?.();
  }

  #say(message: Said): void {
    this.#channel?.announce(message);
  }
}
