import type { Clock } from '../model/environment.js';
import { ClientClosedError } from '../model/errors.js';
import type { TabLock } from '../tabs/tab-lock.js';
import type { Queue } from './queue.js';
import { claimDoc, type StoredClaim } from './stored.js';

export interface ClaimWaitParts {
  readonly queue: Queue;
  readonly clock: Clock;
  readonly tabLock: TabLock;
  readonly closed: AbortSignal;
  /** Tells the other tabs that something is stored, or was removed. */
  readonly announce: () => void;
  /** Whether the enqueue of this bulk operation is under way in this tab. */
  readonly isUnderWay: (bulkOperationId: string) => boolean;
}

/** A message between tabs can get lost: what is waited for is looked at so often. */
const pollEveryMs = 1000;
/**
 * Where no lock can prove that the tab of an enqueue is gone, its keys are taken over after so long. An enqueue that takes
 * longer than half of it looks whether its keys are its own still, before and after its header is written.
 */
export const takeOverAfterMs = 30_000;

/** Waits for the enqueue of someone else, which has made a record of a key and not yet its header. */
export class ClaimWait {
  readonly #parts: ClaimWaitParts;
  readonly #waiting = new Set<() => void>();
  /** Counts the news: what comes while the store is looked at is not missed. */
  #heard = 0;

  constructor(parts: ClaimWaitParts) {
    this.#parts = parts;
  }

  /** The name of this tab, as a record says it: null when no lock says that the tab lives. */
  async tab(): Promise<string | null> {
    const { tabLock } = this.#parts;
    return (await tabLock.hold()) ? tabLock.tab : null;
  }

  /** Whether the record stands for something that was queued. */
  counts({ bulkOperationId }: StoredClaim): boolean {
    const header = this.#parts.queue.headers.known(bulkOperationId);
    return header !== undefined && header.withdrawn !== true;
  }

  /** Something is stored, or was removed, that someone may wait for. */
  news(): void {
    this.#heard++;
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when the record counts, is another one or removed (`changed`), or when its enqueue will never end (`gone`). */
  async until(claim: StoredClaim): Promise<'changed' | 'gone'> {
    const { queue, clock, tabLock, closed, announce, isUnderWay } = this.#parts;
    const isOurTab = claim.tab === tabLock.tab;
    const lock: { proof?: 'gone' | 'impossible' } = claim.tab === null ? { proof: 'impossible' } : {};
    const over = new AbortController();
    if (claim.tab !== null && !isOurTab) {
      tabLock
        .whenFree(claim.tab, over.signal)
        .then(
          (isGone) => (lock.proof = isGone ? 'gone' : 'impossible'),
          () => (lock.proof = 'impossible'),
        )
        .finally(() => {
          this.news();
        });
      announce(); // whoever could not remove it tries again
    }
    const elapsed = sinceNow(clock);
    try {
      for (;;) {
        const heard = this.#heard;
        // What was true before the store was looked at: its header may have been written in its last moment.
        const isGone =
          queue.headers.known(claim.bulkOperationId)?.withdrawn === true ||
          (isOurTab ? !isUnderWay(claim.bulkOperationId) : lock.proof === 'gone') ||
          (lock.proof === 'impossible' && elapsed() >= takeOverAfterMs);
        await queue.headers.loadNew();
        if (this.counts(claim)) return 'changed';
        const stored = await queue.docs.read(claim._id, claimDoc);
        if (stored?._rev !== claim._rev) return 'changed';
        if (isGone) return 'gone';
        await this.#nextLook(heard);
        if (closed.aborted) throw new ClientClosedError();
      }
    } finally {
      over.abort();
    }
  }

  /** News, closing, or a while. */
  #nextLook(heard: number): Promise<void> {
    const { clock, closed } = this.#parts;
    if (heard !== this.#heard) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        closed.removeEventListener('abort', wake);
        clock.clearTimer(timer);
        resolve();
      };
      const timer = clock.setTimer(wake, pollEveryMs);
      this.#waiting.add(wake);
      closed.addEventListener('abort', wake);
      if (closed.aborted) wake();
    });
  }
}

/** Milliseconds since now, by the clock that shows more: one of them may stand still, or be set. */
export function sinceNow(clock: Clock): () => number {
  const [wall, monotonic] = [clock.wall(), clock.monotonic()];
  return () => Math.max(clock.wall() - wall, clock.monotonic() - monotonic);
}
