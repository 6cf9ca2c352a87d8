import { ServerDatabase } from './http/server-database.js';
import type { ClientStatus, Target, WorkCounts } from './model/states.js';
import { retryCrashed } from './queue/crashed.js';
import type { RegainedPlace } from './heal/regaining.js';
import type { Header } from './queue/stored.js';
import type { Parts } from './parts.js';
import { resultsOf } from './options.js';
import { noTransfer, operationCounts } from './status.js';
import { publicationsOf } from './publications.js';
import type { Publication } from './sync/publication.js';
import { isMoving, progressOf, type Progress, type ProgressParts } from './sync/device.js';
import { Results, storedProof } from './sync/results.js';

/** All that runs in the tab that leads: bulk operations, indexes, push and pull, results. */
export class Work {
  readonly #parts: Parts;
  #isLeader = false;
  #results: Results | undefined;
  /** What moved when it was last looked at. */
  #seen = '';
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
    const { options, failures, runner, indexes, replication, pageEvents, housekeeping, endings } = this.#parts;
    await failures.reload();
    await endings.recover();
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

  /** These operations have events again. Answers whether each publication has made durable that it looks at them. */
  async regained(places: readonly RegainedPlace[]): Promise<boolean> {
    const noted = await Promise.all(this.#publications.map((one) => one.lookAgain(places)));
    return noted.every((isNoted) => isNoted);
  }

  /** The server may have revisions that it did not have before. */
  pushed(): void {
    for (const publication of this.#publications) publication.pushed();
    this.#results?.poke();
  }

  /** A person has decided about failures. */
  decided(): void {
    if (!this.#isLeader || this.#parts.closed.aborted) return;
    this.#parts.replication?.reread();
    for (const publication of this.#publications) publication.decided();
  }

  /** What the server does not have now is not on its way. */
  pushRests(): void {
    for (const publication of this.#publications) publication.pushRests();
    this.#results?.poke();
  }

  /** The server has less than it had. */
  setBack(): void {
    this.#results?.setBack();
  }

  /** Failures have changed: what they held back may go on. */
  failuresChanged(): void {
    if (this.#isLeader) this.#parts.conflictWatch.poke();
  }

  /**
   * Something that is shown has changed: where nothing moves any more, the device document may have something new to say,
   * whatever it was that came to its end.
   */
  shown(): void {
    if (!this.#isLeader || this.#results === undefined) return;
    const counts = this.counts();
    const { push, healing } = this.status();
    const seen = JSON.stringify([counts, push.state, healing.state]);
    if (seen === this.#seen) return;
    this.#seen = seen;
    if (!isMoving(counts)) this.#results.poke();
  }

  /** What is reported to the server has changed. */
  reported(): void {
    this.#results?.poke();
  }

  pullNow(): void {
    if (this.#isLeader) this.#parts.replication?.pullNow();
  }

  status(): Pick<ClientStatus, 'push' | 'pull' | 'healing' | 'results' | 'publishers' | 'unpublished' | 'unconfirmed'> {
    const { replication, conflictWatch } = this.#parts;
    const publishers = Object.fromEntries(this.#publications.map((one) => [one.name, one.status()]));
    return {
      publishers,
      unpublished: Math.max(0, ...Object.values(publishers).map(({ unpublished }) => unpublished)),
      unconfirmed: this.#isLeader ? (replication?.unconfirmed() ?? 0) : 0,
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

  /** How much is left to do, by what this tab has in memory: true only in the tab that leads. */
  counts(): WorkCounts {
    const { queue, reports, quarantine, edits, options } = this.#parts;
    const { unpublished, unconfirmed } = this.status();
    const counts = operationCounts(queue.headers.all(), reports);
    return {
      ...counts,
      failed: counts.failed + edits.open,
      unreported: options.results === undefined ? 0 : counts.unreported,
      quarantined: quarantine.open,
      unpublished,
      unconfirmed,
    };
  }

  /** How far this store is, by what is stored. Other tabs may have stored more than this one has read. */
  progress(): Promise<Progress> {
    return progressOf(this.#progressParts(), 0);
  }

  /** Sends the device document once nothing moves, also when it says nothing new. */
  askProof(): void {
    if (this.#isLeader) this.#results?.ask();
  }

  /** The device document as the server took it last; `count` grows with each that was sent by this tab. */
  async proof(): Promise<{ readonly count: number; readonly asOf: number; readonly drained: boolean }> {
    const { count, ...own } = this.#results?.proof() ?? { count: 0, asOf: 0, drained: false };
    return { count, ...(this.#isLeader ? own : await storedProof(this.#parts.queue)) };
  }

  #progressParts(): ProgressParts {
    return { ...this.#parts, counts: () => this.counts() };
  }

  #newResults(store: string): Results | undefined {
    const { options, requests, transfer, environment, queue } = this.#parts;
    const place = resultsOf(options);
    if (place === undefined) return undefined;
    let isWarned = false;
    return new Results({
      ...this.#parts,
      ...this.#progressParts(),
      ...transfer,
      server: new ServerDatabase(place.url, requests, 'retry'),
      origin: {
        store,
        // Without the option the store learns whose it is from the server.
        get user() {
          return queue.store.user;
        },
      },
      appVersion: options.appVersion,
      breathe: environment.breathe,
      disclosure: {
        content: place.content,
        redact: options.redact,
        redactFailed: () => {
          if (!isWarned) environment.warn('`redact` failed. Nothing of the content that it was given is sent.');
          isWarned = true;
        },
      },
    });
  }
}
