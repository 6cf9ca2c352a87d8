import { z } from 'zod/mini';
import type { EnqueueReceipt } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import { AfieldError } from '../model/errors.js';
import type { NotDoneOperation, Target } from '../model/states.js';
import type { EndedFailure, Endings } from './endings.js';
import type { Failures } from './failures.js';
import { newHeader, partsOf } from './new-header.js';
import { receiptOf } from './receipt.js';
import { derivedFrom, derivedKey, keyOf, storedKey } from './keys.js';
import type { Queue } from './queue.js';
import type { Reports } from './reports.js';
import {
  isOutcome,
  isUnplanned,
  payloadSize,
  sequenceOf,
  type Header,
  type PlanHeader,
  type StoredFailure,
  type StoredOperation,
} from './stored.js';
import { withdraw } from './withdrawal.js';

/** A failure that is queued anew, perhaps with another id or content. */
export interface Retried {
  readonly failure: StoredFailure;
  readonly edited?: { readonly action: string; readonly operation: StoredOperation };
}

/**
 * Queues anew what failed, or what a bulk operation did not do (R19). The new bulk operation is durable first and
 * names what it took over; then that is marked. A crash in between is made good before the new one runs.
 */
export class Retries {
  readonly #queue: Queue;
  readonly #failures: Failures;
  readonly #reports: Reports;
  readonly #endings: Endings;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #payloadOf: (bulkOperationId: string) => string;
  /** Ids of those that have marked all that they took over. */
  readonly #marked = new Set<string>();
  readonly #settling = new Map<string, Promise<boolean>>();
  #working: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    queue: Queue;
    failures: Failures;
    reports: Reports;
    endings: Endings;
    clock: Clock;
    newId: () => string;
    /** How the ids of its payloads begin. */
    payloadOf: (bulkOperationId: string) => string;
  }) {
    this.#queue = parts.queue;
    this.#failures = parts.failures;
    this.#reports = parts.reports;
    this.#endings = parts.endings;
    this.#clock = parts.clock;
    this.#newId = parts.newId;
    this.#payloadOf = parts.payloadOf;
  }

  /** One new bulk operation for each target and lane. `choose` is asked when all earlier calls are done. */
  retry(choose: () => readonly Retried[], ratePerSecond: number | undefined): Promise<readonly EnqueueReceipt[]> {
    return this.#inTurn(async () => {
      const receipts: EnqueueReceipt[] = [];
      const chosen = await this.#chosen(choose, ({ failure }) => failure);
      for (const { target, lane, retried } of this.#grouped(chosen)) {
        const given = { target, lane, key: this.#newId(), retries: true };
        const receipt = await this.#append({ ...given, ...rateOf(ratePerSecond) }, retried.map(retriedOperation));
        if (receipt !== undefined) receipts.push(receipt);
      }
      return receipts;
    });
  }

  /** What a `failed` or cancelled bulk operation did not do, as a new one. Operations keep their keys: they never ended. */
  continueRest(bulkOperationId: string): Promise<EnqueueReceipt> {
    return this.#inTurn(async () => {
      const found = await this.#queue.headers.find(bulkOperationId);
      const header = await this.#queue.headers.refresh(sequenceOf(found._id));
      if (header.state !== 'failed' && header.state !== 'cancelled') {
        throw new AfieldError(
          'not_stopped',
          `The bulk operation ${header.id} is neither failed nor cancelled. retryFailed() retries what failed of it.`,
        );
      }
      const continuedBy = header.continuedBy ?? (await this.#continuationOf(header));
      if (continuedBy !== undefined) throw alreadyRetried(header, continuedBy);
      if (header.unsettled !== undefined) {
        // What is under way may still be done: it would be done, and counted, twice.
        throw new AfieldError('not_settled', `What the last attempt of ${header.id} has done is not known yet.`);
      }
      const receipt = await (isUnplanned(header) ? this.#planAnew(header) : this.#appendRest(header));
      if (receipt !== undefined) return receipt;
      const { continuedBy: faster } = await this.#queue.headers.refresh(sequenceOf(header._id));
      throw alreadyRetried(header, faster ?? '');
    });
  }

  async #appendRest(header: Header): Promise<EnqueueReceipt | undefined> {
    const rest = await this.#restOf(header);
    if (rest.length === 0) throw new AfieldError('nothing_left', `The bulk operation ${header.id} has no rest.`);
    const { target, lane, key, id, rate } = header;
    const given = { target, lane, ...rateOf(rate) };
    return this.#append({ ...given, key: derivedKey(key, isRest(header)), continues: id }, rest);
  }

  /** The one that took over the rest of this one, when whoever queued it has ended before that was marked. */
  async #continuationOf({ id }: Header): Promise<string | undefined> {
    await this.#queue.headers.loadNew();
    const found = this.#queue.headers.all().find(({ continues }) => continues === id);
    if (found !== undefined) await this.settle(found);
    return found?.id;
  }

  /** What a bulk operation has not done: the rest of a `failed` or cancelled one, what is still to do of any other (R5). */
  async notDone(bulkOperationId: string): Promise<readonly NotDoneOperation[]> {
    const found = await this.#queue.headers.find(bulkOperationId);
    const header = await this.#queue.headers.refresh(sequenceOf(found._id));
    if (isUnplanned(header)) return [];
    return (await this.#restOf(header)).map(({ action, index, operation: { i, k, c } }) => ({
      bulkOperationId,
      index,
      key: k ?? '',
      id: typeof i === 'string' && i !== '' ? i : undefined,
      action,
      operation: { ...(i === undefined ? {} : { id: i }), content: c },
    }));
  }

  /** What was not planned is planned by the new one: the same request, the same subjects. */
  async #planAnew(header: PlanHeader): Promise<EnqueueReceipt | undefined> {
    const { target, lane, key, plan, subjects } = header;
    const id = this.#newId();
    const payload = this.#payloadOf(id);
    const derived = derivedKey(key, isRest(header));
    const given = { id, key: derived, target, payload, parts: [], queuedAt: this.#clock.wall(), plan };
    const made = newHeader({ ...given, lane, continues: header.id, derived: true }, []);
    const anew = await this.#queue.numbers.take({ ...made, subjects });
    if (!(await this.settle(anew))) return undefined;
    return receiptOf(anew);
  }

  /** Discards failures: they are kept, but no longer open. Answers how many. */
  discard(choose: () => readonly StoredFailure[]): Promise<number> {
    return this.#inTurn(async () => {
      const chosen = await this.#chosen(choose, (failure) => failure);
      const at = this.#clock.wall();
      await this.#endings.end(chosen.map((failure) => ({ ...failure, resolution: { how: 'discarded', at } })));
      return chosen.length;
    });
  }

  /** Ends failures whose documents are back at the server's version. Answers how many. */
  reverted(choose: () => readonly StoredFailure[]): Promise<number> {
    return this.#inTurn(async () => {
      const chosen = await this.#chosen(choose, (failure) => failure);
      const at = this.#clock.wall();
      await this.#endings.end(chosen.map((failure) => ({ ...failure, resolution: { how: 'reverted', at } })));
      return chosen.length;
    });
  }

  /** Keeps in failures what is about to be given up. Durable when it resolves. */
  keep(choose: () => readonly StoredFailure[]): Promise<void> {
    return this.#inTurn(async () => {
      const chosen = await this.#chosen(choose, (failure) => failure);
      const revs = await this.#reports.write([], chosen);
      this.#failures.added(chosen.flatMap((one) => (revs.has(one._id) ? { ...one, _rev: revs.get(one._id) } : [])));
      if (revs.size < chosen.length) await this.#failures.reload();
    });
  }

  /**
   * Marks what a bulk operation took over, as far as it is not marked yet. One whose operations another one took over at
   * the same moment is withdrawn before it runs. Answers whether this one stays.
   */
  settle(header: Header): Promise<boolean> {
    // Whoever has queued it and whoever runs it may ask at the same moment: marked twice would be counted twice for a while.
    const underWay = this.#settling.get(header.id);
    if (underWay !== undefined) return underWay;
    const settling = this.#settle(header).finally(() => this.#settling.delete(header.id));
    this.#settling.set(header.id, settling);
    return settling;
  }

  async #settle(header: Header): Promise<boolean> {
    if (header.continues !== undefined) {
      const continuedBy = await this.#settleRest(header, header.continues);
      if (continuedBy !== header.id) return this.#withdraw(header, continuedBy);
    }
    if (header.retries !== true) return true;
    await this.#failures.load();
    const at = this.#clock.wall();
    const names: (string | undefined)[] = [];
    const marked: EndedFailure[] = [];
    for (let from = 0; from < header.total; from += payloadSize) {
      const operations = await this.#queue.contents.operations(header, from, payloadSize);
      operations.forEach(({ f }, place) => {
        names.push(f);
        const failure = f === undefined ? undefined : this.#failures.get(f);
        // What the server refused is over when the server takes it, not before.
        if (failure === undefined || failure.resolution !== undefined || failure.refused !== null) return;
        const resolution = { how: 'retried', bulkOperationId: header.id, index: from + place, at } as const;
        marked.push({ ...failure, resolution });
      });
    }
    await this.#endings.end(marked);
    // What a person took out of quarantine counts whatever becomes of the failure: discarded, or retried at the same moment.
    if (header.taken !== undefined) return true;
    const resolutions = names.map((name) => this.#failures.get(name ?? '')?.resolution);
    const isOurs = resolutions.some(
      (one) => one === undefined || (one.how === 'retried' && one.bulkOperationId === header.id),
    );
    if (isOurs) return true;
    const [first] = resolutions;
    return this.#withdraw(header, first?.how === 'retried' ? first.bulkOperationId : undefined);
  }

  /** Marks that the rest of one was taken over. Answers by whom: the first that says so. */
  async #settleRest(header: Header, continues: string): Promise<string> {
    try {
      const sequence = sequenceOf((await this.#queue.headers.find(continues))._id);
      const { header: old } = await this.#queue.headers.change(sequence, (stored) =>
        stored.continuedBy === undefined ? { ...stored, continuedBy: header.id } : undefined,
      );
      return old.continuedBy ?? header.id;
    } catch (error) {
      // It was removed since its rest was read: no one else can take that over.
      if (error instanceof AfieldError && error.code === 'unknown_bulk_operation') return header.id;
      throw error;
    }
  }

  /** Ends one that came too late, unless it runs already. Answers whether it stays. */
  async #withdraw(late: Header, continuedBy: string | undefined): Promise<boolean> {
    const by = continuedBy === undefined ? {} : { continuedBy };
    const header = await withdraw(this.#queue.headers, late, by);
    return header.state !== 'cancelled';
  }

  /**
   * What is chosen, judged by what is stored: another tab may have decided on some of it a moment ago, or whoever queued
   * it may have ended before it was marked.
   */
  async #chosen<One>(choose: () => readonly One[], failureOf: (one: One) => StoredFailure): Promise<readonly One[]> {
    await this.#queue.headers.loadNew();
    for (const header of this.#queue.headers.all()) {
      if (header.retries !== true || header.attempts > 0 || this.#marked.has(header.id)) continue;
      await this.settle(header);
      this.#marked.add(header.id);
    }
    const chosen = choose();
    const revs = await this.#queue.docs.revisions(chosen.map((one) => failureOf(one)._id));
    const isPresent = chosen.map(failureOf).every(({ _id, _rev }) => revs.get(_id) === _rev);
    if (isPresent) return chosen;
    await this.#failures.reload();
    return choose();
  }

  async #append(
    given: Pick<Header, 'key'> &
      Pick<Parameters<typeof newHeader>[0], 'target' | 'lane' | 'rate' | 'retries' | 'continues'>,
    entries: readonly { action: string; operation: StoredOperation }[],
  ): Promise<EnqueueReceipt | undefined> {
    const id = this.#newId();
    const operations = entries.map(({ operation }) => operation);
    const header = await this.#queue.append(
      newHeader(
        { ...given, id, parts: partsOf(entries), payload: this.#payloadOf(id), queuedAt: this.#clock.wall() },
        operations,
      ),
      operations,
    );
    if (!(await this.settle(header))) return undefined;
    this.#marked.add(id);
    return receiptOf(header);
  }

  #grouped(retried: readonly Retried[]): { target: Target; lane: string | null; retried: Retried[] }[] {
    const headers = new Map(this.#queue.headers.all().map((header) => [header.id, header]));
    const groups = new Map<string, { target: Target; lane: string | null; retried: Retried[] }>();
    for (const one of retried) {
      const header = headers.get(one.failure.bulkOperationId ?? '');
      if (header === undefined) continue;
      const { target, lane } = header;
      const name = JSON.stringify([target, lane]);
      const group = groups.get(name) ?? { target, lane, retried: [] };
      group.retried.push(one);
      groups.set(name, group);
    }
    return [...groups.values()];
  }

  async #restOf(header: Header): Promise<{ action: string; index: number; operation: StoredOperation }[]> {
    const known = await this.#queue.records.find(sequenceOf(header._id), header.cursor);
    const operations = await this.#queue.contents.operations(header, header.cursor, header.total - header.cursor);
    const actions = header.parts.flatMap(({ action, count }) => Array<string>(count).fill(action));
    return operations.flatMap((operation, place) => {
      const row = known?.rows[place];
      const index = header.cursor + place;
      if (isOutcome(row)) return [];
      const { b, t } = row ?? {};
      const w = { ...(b === undefined ? {} : { b }), ...(t === undefined ? {} : { t }) };
      return [
        {
          action: actions[index] ?? '',
          index,
          operation: {
            ...operation,
            ...storedKey(keyOf(header, operation, index)),
            ...(row?.s === 'intent' ? { w } : {}),
          },
        },
      ];
    });
  }

  #inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    const result = this.#working.then(work);
    this.#working = result.catch(() => undefined); // the next one does not care how this one ended
    return result;
  }
}

const storedContent = z.object({ id: z.optional(z.unknown()), content: z.optional(z.unknown()) });

/** The operation of a failure, as it is queued anew: its key is derived from the old one (R19). */
function retriedOperation({ failure, edited }: Retried): { action: string; operation: StoredOperation } {
  const key = storedKey(derivedFrom({ key: failure.key ?? failure._id, origin: failure.origin ?? 'o' }));
  if (edited !== undefined) {
    const { action, operation } = edited;
    return { action, operation: { ...key, ...operation, f: failure._id } };
  }
  const { id, content } = storedContent.parse(JSON.parse(failure.operation ?? '{}'));
  return {
    action: failure.action ?? '',
    operation: { ...(id === undefined ? {} : { i: id }), ...key, c: content, f: failure._id },
  };
}

/** Whether its key was derived from that of another one. */
function isRest({ derived, continues }: Header): boolean {
  return derived === true || continues !== undefined;
}

function alreadyRetried({ id }: Header, continuedBy: string): AfieldError {
  return new AfieldError('already_retried', `The rest of ${id} was queued anew as ${continuedBy}.`);
}

function rateOf(rate: number | undefined): { rate?: number } {
  return rate === undefined ? {} : { rate };
}
