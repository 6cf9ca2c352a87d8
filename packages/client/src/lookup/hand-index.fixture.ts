import { BehaviorSubject } from 'rxjs';
import { IndexNotReadyError } from '../model/errors.js';
import type {
  IndexAnswer,
  IndexDefinition,
  IndexRow,
  IndexState,
  LocalIndex,
  SkippedDocument,
} from '../model/lookup.js';
import type { KeptIndexParts } from './kept-index.js';

/**
 * An index that a test holds in its hand, for `vi.mock`: it says when it is ready, what it answers, and sees how often it was
 * called. It stands where `KeptIndex` stands.
 */
export class HandIndex implements LocalIndex {
  /** Of all clients that were opened, the newest last. */
  static readonly all: HandIndex[] = [];

  readonly name: string;
  readonly state$ = new BehaviorSubject<IndexState>({ state: 'idle' });
  rows: readonly IndexRow[] = [];
  /** What the next queries are refused with, while it says that it is ready. */
  readonly refusals: IndexNotReadyError[] = [];
  queries = 0;
  follows = 0;
  pokes = 0;
  isClosed = false;
  readonly #changed: () => void;

  constructor({ name }: IndexDefinition, { changed }: KeptIndexParts) {
    this.name = name;
    this.#changed = changed;
    HandIndex.all.push(this);
  }

  get isReady(): boolean {
    return this.state$.value.state === 'ready';
  }

  become(state: 'building' | 'ready' | 'parked'): void {
    const counts = { rows: 0, skipped: 0 };
    if (state === 'ready') this.state$.next({ state, ...counts });
    else if (state === 'building') this.state$.next({ state, ...counts, total: undefined, rowsPerSecond: undefined });
    else this.state$.next({ state, ...counts, reason: 'DataError', id: undefined, resumePoint: 0 });
    this.#changed();
  }

  query(): Promise<IndexAnswer> {
    this.queries++;
    const { state } = this.state$.value;
    const refusal = state === 'ready' ? this.refusals.shift() : new IndexNotReadyError(this.name, state);
    if (refusal === undefined) return Promise.resolve({ rows: this.rows, behind: false });
    if (refusal.state === 'parked') this.become('parked');
    return Promise.reject(refusal);
  }

  follow(): void {
    this.follows++;
  }

  poke(): void {
    this.pokes++;
  }

  close(): Promise<void> {
    this.isClosed = true;
    this.state$.complete();
    return Promise.resolve();
  }

  build(): Promise<void> {
    return Promise.reject(new Error('a test says when it is ready'));
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
}
