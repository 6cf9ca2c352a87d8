import { BehaviorSubject, type Observable } from 'rxjs';
import type { Channel, Clock, Locks } from '../model/environment.js';
import { IndexNotReadyError } from '../model/errors.js';
import type {
  IndexAnswer,
  IndexDefinition,
  IndexQuery,
  IndexQueryOptions,
  IndexState,
  LocalIndex,
  SkippedDocument,
} from '../model/lookup.js';
import type { LocalDatabase } from '../store/local-database.js';

export interface KeptIndexParts {
  /** Names the client's stores. */
  readonly client: string;
  readonly documents: LocalDatabase;
  readonly indexedDB: IDBFactory | undefined;
  readonly locks: Locks;
  readonly clock: Clock;
  readonly channel: (name: string, news: (message?: unknown) => void) => Channel;
  readonly breathe: () => Promise<void>;
  readonly random: () => number;
  readonly warn: (line: string) => void;
  readonly closed: AbortSignal;
  /** It has become ready, or is not ready any more. */
  readonly changed: () => void;
}

/** One index: kept up to date from the documents' changes. */
export class KeptIndex implements LocalIndex {
  readonly name: string;
  readonly state$: Observable<IndexState>;
  readonly #state = new BehaviorSubject<IndexState>({ state: 'idle' });

  constructor(definition: IndexDefinition, _parts: KeptIndexParts) {
    this.name = definition.name;
    this.state$ = this.#state.asObservable();
  }

  get isReady(): boolean {
    return this.#state.value.state === 'ready';
  }

  follow(): void {}
  poke(): void {}

  query(_query: IndexQuery, _options?: IndexQueryOptions): Promise<IndexAnswer> {
    return Promise.reject(new IndexNotReadyError(this.name, 'idle'));
  }

  build(): Promise<void> {
    return Promise.reject(new IndexNotReadyError(this.name, 'idle'));
  }
  resume(): Promise<void> {
    return this.build();
  }
  rebuild(): Promise<void> {
    return this.build();
  }
  skipped(): Promise<readonly SkippedDocument[]> {
    return Promise.resolve([]);
  }

  close(): Promise<void> {
    this.#state.complete();
    return Promise.resolve();
  }
}
