import type { ClientOptions } from './model/client.js';
import type { Clock, Environment } from './model/environment.js';
import { AfieldError, StoreLeftError } from './model/errors.js';
import { removeIndexes } from './lookup/names.js';
import type { Queue } from './queue/queue.js';
import { wipeNoteDoc, wipeNoteId, type WipeNote } from './queue/stored.js';
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
      const note = await this.#parts.queue.readDoc(wipeNoteId, wipeNoteDoc);
      if (note !== undefined) await this.run(note);
    });
  }

  /** Rejects with `AfieldError` (`wipe_unfinished`) when a database could not be removed; what is left goes at the next start. */
  async run(note: WipeNote): Promise<void> {
    const { options, environment, documentStore, queueStore } = this.#parts;
    const { clock, indexedDB, presence } = environment;
    await this.#assertStands(note);
    const documents = this.#documentsOf(note);
    await inTime(documents.destroy(), clock);
    if (documents !== documentStore) await documentStore.reopen();
    if (indexedDB !== undefined) await inTime(removeIndexes(indexedDB, options.name, options.indexes ?? []), clock);
    await inTime(Promise.resolve(presence.forget?.(runNote(options.name))), clock);
    await this.#assertStands(note);
    await inTime(queueStore.destroy(), clock);
  }

  /** Another tab may have come to the end of it, and the next person may have begun. */
  async #assertStands({ id }: WipeNote): Promise<void> {
    const stored = await this.#parts.queue.readDoc(wipeNoteId, wipeNoteDoc);
    if (stored?.id !== id) throw new StoreLeftError();
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

async function inTime(removal: Promise<unknown>, clock: Clock): Promise<void> {
  let timer: unknown;
  const late = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimer(() => {
      reject(unfinished());
    }, patienceMs);
  });
  try {
    await Promise.race([removal, late]);
  } catch (error) {
    throw error instanceof AfieldError ? error : unfinished(error);
  } finally {
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
