import { z } from 'zod/mini';
import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import { endStates, type TransferStatus } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import type { Queue } from '../queue/queue.js';
import type { ReportChange, Reports } from '../queue/reports.js';
import { transferDoc, transferId, type Header } from '../queue/stored.js';
import { deviceOf, isMoving, progressOf, sentDevice, writesOf, type Progress, type ProgressParts } from './device.js';
import { truthOfEdits, type EditFailures } from './edit-failures.js';
import type { Disclosure } from './failure-rows.js';
import { deviceId, edits as editsName } from './result-documents.js';
import { editsParcel, resultParcel, type CountedParcel, type Origin } from './result-parcels.js';
import { deliver, type Companion, type Delivery } from './result-writes.js';
import { Rounds } from './rounds.js';
import { Transfer, type Carrier, type Errand, type TransferParts } from './transfer.js';

/** Bulk operations whose results go out in one step. */
const perStep = 5000;
/** Reports that are written to the local store in one call. */
const reportsPerWrite = 500;

export const resultsData = z.object({
  /** When bulk operations that wait reported last (wall clock). */
  roundAt: z.nullable(z.number()),
  /** What the server has of the app's own edits that were refused, and in how many documents. */
  edits: z.object({ truth: z.string(), chunks: z.number() }),
  confirmedUpTo: z.number(),
  device: z.nullable(sentDevice),
  /** The database was recreated, or restored from a backup: nothing counts as delivered any more. */
  again: z.boolean(),
  /** Whose name all that was delivered carries; null: none was known. Undefined: nothing was delivered, or a build before did. */
  user: z.optional(z.nullable(z.string())),
});
export type ResultsData = z.infer<typeof resultsData>;

const nothingSent: ResultsData = {
  roundAt: null,
  edits: { truth: '', chunks: 0 },
  confirmedUpTo: 0,
  device: null,
  again: false,
};

interface ResultsStep {
  readonly headers: readonly Header[];
  readonly edits: boolean;
  readonly isRound: boolean;
}

export interface ResultsParts extends TransferParts, ProgressParts {
  readonly queue: Queue;
  readonly failures: Failures;
  readonly edits: EditFailures;
  readonly reports: Reports;
  readonly server: ServerDatabase;
  readonly origin: Origin;
  readonly appVersion: string | undefined;
  readonly disclosure: Disclosure;
  readonly breathe: () => Promise<void>;
}

/** The device document as it was sent last, by whichever tab. */
export async function storedProof(queue: Queue): Promise<{ readonly asOf: number; readonly drained: boolean }> {
  const stored = await queue.docs.read(transferId('results'), transferDoc);
  const parsed = resultsData.safeParse(stored === undefined ? undefined : JSON.parse(stored.data));
  const { device, again } = parsed.success ? parsed.data : nothingSent;
  return { asOf: device?.asOf ?? 0, drained: device?.drained === true && !again };
}

/** Bulk operations at their end whose result the server does not have as it is now. */
export function unreported(queue: Queue, reports: Reports): readonly Header[] {
  return queue.headers.all().filter((header) => endStates.has(header.state) && !reports.isDelivered(header));
}

/**
 * Brings results, failures and the device document to the server under fixed ids: sending twice stores once, and a truth
 * that changed is written over the old one (S1, S11).
 *
 *   next? ─ restored from a backup, or ──────────▶ nothing counts as delivered ─▶ next?
 *         │ sent before the user was known
 *         ├ ended and not there, edits, a round ─▶ results, failures, device ───▶ next?
 *         └ device says something else now ──────▶ device ──────────────────────▶ next?
 *
 * Every delivery ends with the device document, which counts them: a server that shows fewer than were made has lost some.
 */
export class Results implements Carrier {
  readonly #parts: ResultsParts;
  readonly #transfer: Transfer<ResultsData, ResultsStep>;
  readonly #rounds: Rounds;
  /** Bulk operations whose result the server did not take: they come after all others. */
  readonly #stuck = new Set<string>();
  /** Someone waits for a device document that is sent from now on. */
  #isAsked = false;
  #proofs = 0;
  /** The device document on the server is the one that is remembered: no other tab, and no run that ended early, has written it. */
  #isSure = false;
  #data: ResultsData = nothingSent;

  constructor(parts: ResultsParts) {
    this.#parts = parts;
    this.#rounds = new Rounds({
      ...parts,
      due: () => {
        this.poke();
      },
    });
    const errand: Errand<ResultsData, ResultsStep> = {
      name: 'results',
      initial: nothingSent,
      parse: (json) => {
        const parsed = resultsData.safeParse(json);
        return parsed.success ? parsed.data : undefined;
      },
      next: (data) => this.#next(data),
      carry: (step, data) => (this.#isAllAnew(data) ? this.#forgetDelivered(data) : this.#carry(step, data)),
    };
    this.#transfer = new Transfer(errand, parts);
  }

  resume(): Promise<void> {
    return this.#transfer.resume();
  }

  poke(): void {
    this.#transfer.poke();
  }

  idle(): Promise<void> {
    return this.#transfer.idle();
  }

  status(): TransferStatus {
    return this.#transfer.status();
  }

  /** Sends the device document once nothing moves, also when it says nothing new. */
  ask(): void {
    this.#isAsked = true;
    this.poke();
  }

  /** The server has less than it had: no local revision counts as confirmed before it is asked again. */
  setBack(): void {
    this.#transfer
      .amend((data) => ({ ...data, confirmedUpTo: 0 }))
      .catch(() => {
        this.#parts.warn(
          'That the server was set back could not be written down. The device document may say too much.',
        );
      });
  }

  /** The device document as the server took it last, and how many it took in this run. */
  proof(): { readonly count: number; readonly asOf: number; readonly drained: boolean } {
    const { asOf = 0, drained = false } = this.#data.device ?? {};
    return { count: this.#proofs, asOf, drained: drained && !this.#data.again };
  }

  async #next(data: ResultsData): Promise<ResultsStep | undefined> {
    const { queue, reports, edits } = this.#parts;
    if (data !== this.#data) {
      // Nothing is remembered of a run before; what another tab has written meanwhile, it knew better.
      if (this.#data !== nothingSent) await this.#refresh();
      this.#data = data;
      this.#isSure = data.device === null;
    }
    const step: ResultsStep = { headers: [], edits: false, isRound: false };
    if (this.#isAllAnew(data)) return step;
    this.#arm(data);
    const open = unreported(queue, reports);
    const first = open.filter(({ id }) => !this.#stuck.has(id));
    const ended = first.length > 0 ? first : open;
    const isRound = this.#rounds.isRoundDue;
    const waiting = isRound ? this.#waiting().filter((header) => !reports.isDelivered(header)) : [];
    const headers = [...waiting, ...ended].slice(0, perStep);
    const areNew = truthOfEdits(await edits.list()) !== data.edits.truth;
    if (headers.length > 0 || areNew) return { headers, edits: areNew, isRound };
    if (await this.#isDeviceDue(data)) return { ...step, isRound };
    if (isRound) this.#nextRound();
    return undefined;
  }

  /** The server has lost what it had, or has it without the name of the person, which is known now (S1). */
  #isAllAnew({ again, device, user: named }: ResultsData): boolean {
    const { user } = this.#parts.origin;
    const isNamed = named === undefined ? device === null : named === user;
    return again || (user !== undefined && !isNamed);
  }

  #waiting(): readonly Header[] {
    return this.#parts.queue.headers.all().filter(({ state }) => !endStates.has(state));
  }

  /** Nothing is armed when nothing waits. */
  #arm({ roundAt, device }: ResultsData): void {
    const { clock, counts } = this.#parts;
    const now = clock.wall();
    this.#rounds.armSeen(device?.sentAt ?? now);
    const [waiting] = this.#waiting();
    // At a start it is not known yet whether all is confirmed and published: that is no reason to report.
    const since = waiting === undefined ? now : Math.max(roundAt ?? 0, waiting.queuedAt);
    if (isMoving(counts())) this.#rounds.armRound(since);
    else this.#rounds.roundOver();
  }

  #nextRound(): void {
    this.#rounds.roundOver();
    if (isMoving(this.#parts.counts())) this.#rounds.armRound(this.#parts.clock.wall());
  }

  /** While something moves the device document would be old at once: it waits for the round. */
  async #isDeviceDue(data: ResultsData): Promise<boolean> {
    const { counts } = this.#parts;
    if (this.#rounds.isSeenDue) return true;
    if (!this.#rounds.isRoundDue && isMoving(counts())) return false;
    const progress = await progressOf(this.#parts, data.confirmedUpTo);
    if (!this.#rounds.isRoundDue && isMoving(progress)) return false;
    return this.#isAsked || !this.#isSure || this.#truthOf(progress) !== data.device?.truth;
  }

  #truthOf(progress: Progress): string {
    const { origin, appVersion } = this.#parts;
    return JSON.stringify(deviceOf(progress, origin, appVersion));
  }

  async #carry(step: ResultsStep, data: ResultsData): ReturnType<Errand<ResultsData, ResultsStep>['carry']> {
    const { server, breathe, clock, reports, queue, origin } = this.#parts;
    const wasAsked = this.#isAsked;
    // The store learns from the server whose it is: before anything is made that would not say it.
    if (origin.user === undefined) await server.identified();
    const { user = null } = origin;
    const parcels = await this.#parcels(step);
    const edits = step.edits ? await this.#editsParcel(data) : undefined;
    // Before anything is sent: what it says is true whatever becomes of the rest.
    const progress = await progressOf(this.#parts, data.confirmedUpTo);
    const all = [...parcels.map(({ parcel }) => parcel), ...(edits === undefined ? [] : [edits.parcel])];
    const companion = this.#companion(progress, data, all.length > 0);
    const delivery = await deliver(server, all, companion, breathe);
    const delivered = parcels.filter(({ parcel }) => delivery.delivered.has(parcel.name));
    await this.#keep(parcels, delivered, delivery);
    const isTaken = delivery.error === undefined && delivery.refusal === undefined && !delivery.isOld;
    const next = {
      ...data,
      user: data.user === undefined && data.device === null ? user : data.user,
      ...(step.isRound && delivery.error === undefined ? { roundAt: clock.wall() } : {}),
      ...(edits !== undefined && delivery.delivered.has(editsName) ? { edits: edits.sent() } : {}),
      ...this.#sent(delivery, companion, progress, data),
    };
    if (step.isRound && delivery.error === undefined) this.#rounds.roundOver();
    if (delivery.error === undefined && delivery.refusal === undefined) this.#isSure = true;
    if (wasAsked && delivery.companion !== undefined && !isMoving(progress)) this.#isAsked = false;
    this.#data = next;
    // While others get through, the ones that do not wait for their turn.
    const goesOn = delivery.error === undefined && unreported(queue, reports).some(({ id }) => !this.#stuck.has(id));
    const error = isTaken || goesOn ? undefined : (delivery.error ?? whyNot(delivery));
    return { data: next, transferred: delivered.length, ...(error === undefined ? {} : { error }) };
  }

  /** Read in one moment: what they say belongs together, however long the sending takes. */
  async #parcels({ headers }: ResultsStep): Promise<readonly Sent[]> {
    const { failures, reports, origin, disclosure } = this.#parts;
    if (headers.length === 0) return [];
    await failures.load();
    const ids = new Set(headers.map(({ id }) => id));
    let found = failures.ofAll(ids);
    const isShort = (header: Header): boolean =>
      (found.get(header.id)?.length ?? 0) < header.failed + reports.of(header).refused;
    // Another tab may have stored failures after they were read here.
    if (headers.some(isShort)) {
      await failures.reload();
      found = failures.ofAll(ids);
    }
    return headers.map((header) => ({
      header,
      truth: reports.truthOf(header),
      parcel: resultParcel(header, found.get(header.id) ?? [], reports, origin, disclosure),
    }));
  }

  async #editsParcel({ edits: { chunks } }: ResultsData): Promise<SentEdits> {
    const { edits, origin, disclosure } = this.#parts;
    const { list, changes } = await edits.snapshot();
    const parcel = editsParcel(list, changes, chunks, origin, disclosure);
    return { parcel, sent: () => ({ truth: truthOfEdits(list), chunks: parcel.chunks() }) };
  }

  #companion(progress: Progress, data: ResultsData, isCounting: boolean): Companion & { readonly lost: () => boolean } {
    const { origin, appVersion, clock } = this.#parts;
    const { device } = data;
    // Every delivery of results is counted in it; while something moves it would be old at once.
    const mayChange = this.#rounds.isRoundDue || !isMoving(progress);
    const hasChanged = mayChange && this.#truthOf(progress) !== device?.truth;
    const isNew = isCounting || hasChanged || this.#isAsked || this.#rounds.isSeenDue;
    let isLost = false;
    return {
      id: deviceId(origin.store),
      known: device === null || !this.#isSure ? undefined : { rev: device.rev, deleted: false, doc: undefined },
      lost: () => isLost,
      make: (present) => {
        const isKnown = device !== null && present?.rev === device.rev;
        const theirs = isKnown ? device.writes : writesOf(present);
        isLost = device !== null && (theirs === undefined || theirs < device.writes);
        if (isKnown && !isNew) return undefined;
        const writes = Math.max(theirs ?? 0, device?.writes ?? 0) + 1;
        // Of a server that has lost something nobody knows what it has.
        const known = isLost ? { ...progress, asOf: 0, drained: false } : progress;
        const doc: Doc = { ...deviceOf(known, origin, appVersion), seenAt: clock.wall(), writes };
        return present?.rev === undefined || present.deleted ? doc : { ...doc, _rev: present.rev };
      },
    };
  }

  #sent(
    { companion: doc }: Delivery,
    { lost }: { readonly lost: () => boolean },
    progress: Progress,
    data: ResultsData,
  ): Partial<ResultsData> {
    const again = data.again || lost();
    if (doc === undefined) return again ? { again } : {};
    this.#proofs++;
    this.#rounds.seen();
    const { confirmedUpTo } = progress;
    const truth = lost() ? '' : this.#truthOf(progress);
    const [asOf, drained] = [Number(doc['asOf']), doc['drained'] === true];
    const [rev, writes, sentAt] = [doc._rev ?? '', Number(doc['writes']), Number(doc['seenAt'])];
    return { again, confirmedUpTo, device: { rev, writes, truth, asOf, drained, sentAt } };
  }

  async #keep(sent: readonly Sent[], delivered: readonly Sent[], delivery: Delivery): Promise<void> {
    // What another tab knows better is read before the next attempt.
    if (delivery.isOld) await this.#refresh();
    if (delivery.error === undefined) for (const { header } of sent) this.#stuck.add(header.id);
    for (const { header } of delivered) this.#stuck.delete(header.id);
    await this.#write(
      delivered.map(({ header, truth, parcel }) => ({
        header,
        change: (report) => ({ ...report, delivered: truth, chunks: Math.max(parcel.chunks(), report.chunks) }),
      })),
    );
  }

  async #refresh(): Promise<void> {
    const { queue, reports, edits } = this.#parts;
    reports.loaded((await queue.refreshAll()).reports);
    edits.changed();
  }

  /** Nothing counts as delivered any more: all is sent anew. */
  async #forgetDelivered(data: ResultsData): ReturnType<Errand<ResultsData, ResultsStep>['carry']> {
    const { queue, reports } = this.#parts;
    const known = queue.headers.all().filter((header) => reports.of(header).delivered !== null);
    await this.#write(known.map((header) => ({ header, change: (report) => ({ ...report, delivered: null }) })));
    const { user } = this.#parts.origin;
    this.#data = {
      ...data,
      again: false,
      edits: { ...data.edits, truth: '?' },
      ...(user === undefined ? {} : { user }),
    };
    return { data: this.#data, transferred: 0 };
  }

  async #write(changes: readonly ReportChange[]): Promise<void> {
    const { reports, breathe } = this.#parts;
    for (let from = 0; from < changes.length; from += reportsPerWrite) {
      if (from > 0) await breathe();
      await reports.write(changes.slice(from, from + reportsPerWrite));
    }
  }
}

interface Sent {
  readonly header: Header;
  readonly truth: string;
  readonly parcel: CountedParcel;
}

interface SentEdits {
  readonly parcel: CountedParcel;
  readonly sent: () => ResultsData['edits'];
}

function whyNot({ refusal, isOld }: Delivery): unknown {
  if (!isOld) return refusal;
  return new RetryableError('Another tab has sent a newer result.', { class: 'conflict', code: 'results-newer' });
}
