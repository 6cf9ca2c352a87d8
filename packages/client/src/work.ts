import { ServerDatabase } from './http/server-database.js';
import type { ClientStatus, Target } from './model/states.js';
import { retryCrashed } from './queue/crashed.js';
import type { Header } from './queue/stored.js';
import type { Parts } from './parts.js';
import { noTransfer } from './status.js';
import { publicationsOf } from './publications.js';
import type { Publication } from './sync/publication.js';
import { resultsErrand } from './sync/results.js';
import { Transfer, type Carrier } from './sync/transfer.js';

/** All that runs in the tab that leads: bulk operations, indexes, push and pull, results. */
export class Work {
  readonly #parts: Parts;
  #isLeader = false;
  #results: Carrier | undefined;
  #publications: readonly Publication[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Only the tab that leads runs anything. */
  lead(storeId: string): void {
    this.#isLeader = true;
    this.#results ??= this.#newResults(storeId);
    if (this.#publications.length === 0) this.#publications = publicationsOf(storeId, this.#parts);
  }

  endLead(): void {
    this.#isLeader = false;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  /**
   * Takes up what the last run left. `stoppedLease` names the run that ended while a person looked at its page (R16).
   * `announce` is called when that queued something anew.
   */
  async resume(storeId: string, stoppedLease: string | undefined, announce: () => void): Promise<void> {
    const { options, failures, runner, indexes, replication, pageEvents, housekeeping } = this.#parts;
    await failures.reload();
    await pageEvents.lead(storeId);
    await runner.resume(stoppedLease);
    // After the queue: what needs no index does not wait for one.
    indexes.lead();
    if (await retryCrashed(options.appVersion, this.#parts)) announce();
    await replication?.resume(storeId);
    await this.#parts.conflictWatch.resume();
    await this.#results?.resume();
    for (const publication of this.#publications) await publication.resume();
    housekeeping.start();
  }

  /** There may be something to do. */
  poke(): void {
    const { closed, runner, replication } = this.#parts;
    if (!this.#isLeader || closed.aborted) return;
    runner.poke();
    replication?.poke();
    this.#results?.poke();
    this.#publish();
  }

  /** A person, or another tab, has changed these. */
  noticed(headers: readonly Header[]): void {
    if (this.#isLeader) this.#parts.runner.noticed(headers);
  }

  /** Documents were written there, or a bulk operation came to its end. */
  wrote(target: Target): void {
    if (target === 'local') {
      this.#parts.replication?.pushNow();
      this.#parts.indexes.poke();
    }
    this.#results?.poke();
    this.#publish();
  }

  /** The server may have revisions that it did not have before. */
  pushed(): void {
    for (const publication of this.#publications) publication.pushed();
  }

  /** What the server does not have now is not on its way. */
  pushRests(): void {
    for (const publication of this.#publications) publication.pushRests();
  }

  /** What is reported to the server has changed. */
  reported(): void {
    this.#results?.poke();
  }

  pullNow(): void {
    if (this.#isLeader) this.#parts.replication?.pullNow();
  }

  status(): Pick<ClientStatus, 'push' | 'pull' | 'healing' | 'results' | 'publishers' | 'unpublished'> {
    const { replication, conflictWatch } = this.#parts;
    const publishers = Object.fromEntries(this.#publications.map((one) => [one.name, one.status()]));
    return {
      publishers,
      unpublished: Math.max(0, ...Object.values(publishers).map(({ unpublished }) => unpublished)),
      ...(replication?.status() ?? { push: noTransfer, pull: noTransfer }),
      healing: conflictWatch.status(),
      results: this.#results?.status() ?? noTransfer,
    };
  }

  /** Resolves when nothing runs any more. */
  async close(): Promise<void> {
    const { runner, indexes, replication, conflictWatch, pageEvents, housekeeping } = this.#parts;
    const publications = this.#publications.map((one) => one.idle());
    await Promise.all([
      runner.idle(),
      housekeeping.idle(),
      this.#results?.idle(),
      replication?.close(),
      conflictWatch.close(),
      indexes.close(),
      ...publications,
    ]);
    pageEvents.close();
  }

  #publish(): void {
    for (const publication of this.#publications) publication.poke();
  }

  #newResults(storeId: string): Carrier | undefined {
    const { options, queue, failures, reports, requests, transfer } = this.#parts;
    if (options.results === undefined) return undefined;
    const server = new ServerDatabase(options.results, requests, 'retry');
    return new Transfer(resultsErrand({ queue, failures, reports, server, storeId }), transfer);
  }
}
