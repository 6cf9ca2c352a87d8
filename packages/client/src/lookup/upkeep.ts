import type { Clock, Locks } from '../model/environment.js';
import type { IndexDefinition, IndexState } from '../model/lookup.js';
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait } from '../retry/wait.js';
import type { LocalDatabase } from '../store/local-database.js';
import type { AnnouncedState } from './announced-state.js';
import type { Connection } from './connection.js';
import { noChanges, type Meta } from './index-store.js';
import { isTransient, reasonOf, runPass, WrongKeysError } from './pass.js';
import { PassLock } from './pass-lock.js';

/** Retries in a row without progress before the index parks (B1). */
const mostRetries = 10;
const shortestRetryMs = 50;
const longestRetryMs = 1000;

export interface UpkeepParts {
  readonly definition: IndexDefinition;
  /** Names the lock of those who write the index. */
  readonly lock: string;
  readonly documents: LocalDatabase;
  readonly connection: Connection;
  readonly state: AnnouncedState;
  readonly locks: Locks;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly breathe: () => Promise<void>;
  readonly random: () => number;
  readonly warn: (line: string) => void;
  readonly closed: AbortSignal;
}

/** Why and where an index has stopped. */
export interface Parked {
  /** Whether it is in the store, where another tab may take it away. */
  readonly isStored: boolean;
  readonly reason: string;
  readonly id: string | undefined;
  readonly error: unknown;
}

/** Brings an index up to date, pass by pass; retries what may pass, and parks what does not (B1, B2). */
export class Upkeep {
  readonly #parts: UpkeepParts;
  readonly #lock: PassLock;
  #running: Promise<void> | undefined;
  #parked: Parked | undefined;
  #meta: Meta | undefined;
  #live: number | undefined;

  constructor(parts: UpkeepParts) {
    this.#parts = parts;
    this.#lock = new PassLock(parts);
  }

  /** Why it has stopped, as far as this tab knows. */
  get parked(): Parked | undefined {
    return this.#parked;
  }

  /** Resolves when all that is stored now is indexed, or the index is parked. Never rejects. */
  catchUp(): Promise<void> {
    this.#running ??= this.#run({ force: false, anew: false });
    return this.#running;
  }

  /** As `catchUp`, also when it is parked; `anew`: from the start. */
  async again(anew: boolean): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    this.#running = this.#run({ force: true, anew });
    return this.#running;
  }

  /** Another tab says so. */
  heard(state: IndexState): void {
    this.#lock.heard();
    if (this.#running !== undefined) return;
    if (state.state !== 'parked') this.#parked = undefined;
    else this.#parked ??= { reason: state.reason, id: state.id, error: undefined, isStored: true };
  }

  /** The store was removed: only whoever resumes makes it anew. */
  removed(): void {
    this.#stop({ reason: 'removed', id: undefined, error: undefined, isStored: false }, this.#meta);
  }

  /** What was found in the store. Answers with why it is parked, if it is. */
  seen(meta: Meta | undefined): Parked | undefined {
    this.#meta = meta;
    if (meta?.parked !== undefined) {
      this.#parked ??= { reason: meta.parked.reason, id: meta.parked.id, error: undefined, isStored: true };
    } else if (this.#parked?.isStored === true) this.#parked = undefined;
    return this.#parked;
  }

  /** The state that it means. */
  stateOf(meta: Meta | undefined): IndexState {
    const parked = this.seen(meta);
    if (parked !== undefined) return parkedState(parked, meta);
    if (meta === undefined) return { state: 'idle' };
    const { rows, skipped } = meta;
    if (meta.complete) return { state: 'ready', rows, skipped };
    return { state: 'building', rows, skipped, total: this.#live, rowsPerSecond: undefined };
  }

  async idle(): Promise<void> {
    await this.#running;
  }

  /** No other tab can take it away; it may come while a pass runs, when the store is removed. */
  get #isStoppedHere(): boolean {
    return this.#parked?.isStored === false;
  }

  async #run(how: { readonly force: boolean; readonly anew: boolean }): Promise<void> {
    await Promise.resolve(); // `#running` is set before anything else happens
    try {
      await this.#tries(how);
    } finally {
      this.#running = undefined;
    }
  }

  async #tries({ force, anew: fromStart }: { readonly force: boolean; readonly anew: boolean }): Promise<void> {
    const { closed, connection, definition, warn } = this.#parts;
    if (force) this.#parked = undefined;
    let anew = fromStart;
    let failures = 0;
    // One that is parked in the store is looked at again: another tab may have resumed it, and the news got lost (R15).
    while (!closed.aborted && !this.#isStoppedHere) {
      try {
        await this.#lock.held(() =>
          this.#pass(force, anew, () => {
            anew = false;
            failures = 0;
          }),
        );
        return;
      } catch (error) {
        // Not through `closed` alone: a call that was under way rejects a moment later.
        if (isClosed(closed) || this.#isStoppedHere) return;
        connection.drop();
        if (error instanceof WrongKeysError) {
          const line = `The index "${definition.name}" stopped at the document "${error.id}": its function \`keys\` is wrong for it.`;
          warn(line);
          return this.#park({ reason: error.code, id: error.id, error: error.cause, isStored: false });
        }
        const reason = reasonOf(error);
        if (!isTransient(error) || failures >= mostRetries) {
          warn(`The index "${definition.name}" stopped (${reason}).`);
          return this.#park({ reason, id: undefined, error, isStored: false });
        }
        failures += 1;
        warn(`Index "${definition.name}": ${reason}; retrying pass ${String(failures)}/${String(mostRetries)}.`);
        await this.#rest(failures);
      }
    }
  }

  async #pass(force: boolean, anew: boolean, progressed: () => void): Promise<void> {
    const { definition, documents, connection, state, clock, breathe, closed } = this.#parts;
    const store = await connection.within(connection.store());
    const before = await connection.within(store.meta());
    if (!force) this.seen(before);
    if (before?.parked !== undefined && !force) {
      state.found(this.stateOf(before));
      return;
    }
    const begunAt = clock.monotonic();
    let rows = 0;
    let first = before?.rows ?? 0;
    const show = (meta: Meta | undefined): void => {
      if (this.#isStoppedHere) return;
      const seconds = (clock.monotonic() - begunAt) / 1000;
      const { rows: done = 0, skipped = 0, complete = false } = meta ?? {};
      if (complete) state.set({ state: 'ready', rows: done, skipped });
      else {
        rows = done - first;
        const rowsPerSecond = rows > 0 && seconds > 0 ? Math.round(rows / seconds) : undefined;
        state.set({ state: 'building', rows: done, skipped, total: this.#live, rowsPerSecond });
      }
    };
    if (before?.complete !== true || state.value.state !== 'ready') show(anew ? undefined : before);
    await runPass({
      definition,
      documents,
      store,
      before,
      breathe,
      closed,
      anew,
      within: (call) => connection.within(call),
      counted: (live) => {
        this.#live = live;
      },
      stored: (meta) => {
        this.#meta = meta;
        if (meta.rows < first) first = meta.rows;
        progressed();
        show(meta);
      },
    });
    // Whoever asked meanwhile may have read the reason that the store still held.
    if (this.#parked?.isStored === true) this.#parked = undefined;
  }

  /** Keeps the reason with the resume point. Where that cannot be stored this tab knows it all the same (B6). */
  async #park(parked: Parked): Promise<void> {
    const { connection } = this.#parts;
    let stored = this.#meta;
    let isStored = false;
    try {
      const store = await connection.within(connection.store());
      const meta = await connection.within(store.meta());
      const { source = '', seq = 0, rows = 0, skipped = 0, complete = false } = meta ?? {};
      const next = { source, seq, rows, skipped, complete, parked: storedReason(parked) };
      const written = await connection.within(store.write(meta, noChanges, next));
      // Where another tab was quicker, the store says what is true: it is looked at again (R15).
      isStored = true;
      stored = written ?? meta;
    } catch {
      connection.drop();
    }
    this.#stop({ ...parked, isStored }, stored);
  }

  #stop(parked: Parked, meta: Meta | undefined): void {
    this.#parked = parked;
    this.#meta = meta;
    this.#parts.state.set(parkedState(parked, meta));
  }

  #rest(failures: number): Promise<void> {
    const { scheduler, clock, random, definition, closed } = this.#parts;
    const most = Math.min(longestRetryMs, shortestRetryMs * 2 ** (failures - 1));
    return new Promise((resolve) => {
      const end = (): void => {
        closed.removeEventListener('abort', end);
        resolve();
      };
      closed.addEventListener('abort', end);
      if (closed.aborted) end(); // by whoever was warned
      scheduler.wait(`index-retry:${definition.name}`, beginWait(clock, Math.round(most * (0.5 + random() / 2))), end);
    });
  }
}

function parkedState({ reason, id }: Parked, meta: Meta | undefined): IndexState {
  const { seq = 0, rows = 0, skipped = 0 } = meta ?? {};
  return { state: 'parked', reason, id, resumePoint: seq, rows, skipped };
}

function storedReason({ reason, id }: Parked): NonNullable<Meta['parked']> {
  return id === undefined ? { reason } : { reason, id };
}

function isClosed(signal: AbortSignal): boolean {
  return signal.aborted;
}
