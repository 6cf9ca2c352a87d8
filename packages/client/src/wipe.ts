import type { ClientOptions } from './model/client.js';
import type { Clock, Environment } from './model/environment.js';
import { AfieldError, StoreLeftError } from './model/errors.js';
import { removeIndexes } from './lookup/names.js';
import type { Queue } from './queue/queue.js';
import type { WipeNote } from './queue/stored.js';
import { LocalDatabase } from './store/local-database.js';

/** So long another tab is waited for that does not let go of a database. */
const patienceMs = 10_000;

export interface WipeParts {
  readonly options: ClientOptions;
  readonly environment: Environment;
  readonly queue: Queue;
  readonly queueStore: LocalDatabase;
  readonly documentStore: LocalDatabase;
}

/**
 * Removes all that a store has left on the device (S7).
 *
 *   note ─▶ documents ─▶ indexes ─▶ notes in local storage ─▶ queue, with the note
 *
 * The note is in the queue's database, which goes last: whoever opens the store before that finds it, and goes on.
 */
export class Wipe {
  readonly #parts: WipeParts;

  constructor(parts: WipeParts) {
    this.#parts = parts;
  }

  /** Only one tab of the store at a time, where the engine has locks. */
  async alone<Value>(run: () => Promise<Value>): Promise<Value> {
    const { environment, options } = this.#parts;
    let running: Promise<Value> | undefined;
    const once = (): Promise<Value> => (running ??= run());
    try {
      await environment.locks.request(`afield:${options.name}:wipe`, new AbortController().signal, async () => {
        await once().catch(() => undefined); // said below
      });
    } catch {
      // The engine gives no lock; each step looks at the note, so that two do no harm.
    }
    return once();
  }

  /** Goes on with what was begun and has not come to its end. Nothing, when another tab has done it meanwhile. */
  finish(): Promise<void> {
    return this.alone(async () => {
      const note = await this.#parts.queue.wipeNotes.find();
      if (note !== undefined) await this.run(note);
    });
  }

  /**
   * Rejects with `AfieldError` (`wipe_unfinished`) when a database could not be removed, or one takes too long: a tab that does
   * not answer holds it. It goes on then as soon as that tab lets go, or at the next start.
   */
  run(note: WipeNote): Promise<void> {
    const { clock } = this.#parts.environment;
    return inTime((onwards) => this.#run(note, onwards), clock);
  }

  async #run(note: WipeNote, onwards: () => void): Promise<void> {
    const { options, environment, documentStore, queueStore } = this.#parts;
    const { indexedDB, presence } = environment;
    await this.#assertStands(note);
    const documents = this.#documentsOf(note);
    await documents.destroy();
    onwards();
    if (documents !== documentStore) await documentStore.reopen();
    await this.#assertStands(note);
    if (indexedDB !== undefined) await removeIndexes(indexedDB, options.name, options.indexes ?? []);
    onwards();
    await presence.forget?.(runNote(options.name));
    await this.#assertStands(note);
    onwards();
    await queueStore.destroy();
  }

  /** Another tab may have come to the end of it, and the next person may have begun. */
  async #assertStands({ wipe }: WipeNote): Promise<void> {
    const stored = await this.#parts.queue.wipeNotes.find();
    if (stored?.wipe !== wipe) throw new StoreLeftError();
  }

  /** The store may have been opened with another name for its documents since. */
  #documentsOf({ documents }: WipeNote): LocalDatabase {
    const { options, documentStore } = this.#parts;
    if (documents === documentsName(options)) return documentStore;
    return new LocalDatabase(() => new options.PouchDB(documents));
  }
}

/** Under this name a page notes in local storage whether someone looks at it. */
export function runNote(client: string): string {
  return `afield:${client}:run`;
}

/** The database of the app's documents. */
export function documentsName({ documents, name }: Pick<ClientOptions, 'documents' | 'name'>): string {
  return documents ?? name;
}

/** Rejects when `run` does not come onwards for so long. */
async function inTime(run: (onwards: () => void) => Promise<void>, clock: Clock): Promise<void> {
  let timer: unknown;
  let isOver = false;
  try {
    await new Promise<void>((resolve, reject) => {
      const onwards = (): void => {
        clock.clearTimer(timer);
        if (isOver) return;
        timer = clock.setTimer(() => {
          reject(unfinished());
        }, patienceMs);
      };
      onwards();
      run(onwards).then(resolve, reject);
    });
  } catch (error) {
    throw error instanceof AfieldError ? error : unfinished(error);
  } finally {
    isOver = true;
    clock.clearTimer(timer);
  }
}

function unfinished(cause?: unknown): AfieldError {
  return new AfieldError(
    'wipe_unfinished',
    'Not all could be removed from this device: another tab of the app holds it. Close all tabs; what is left is removed when the app is opened next.',
    cause === undefined ? undefined : { cause },
  );
}
