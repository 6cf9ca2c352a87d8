import { z } from 'zod/mini';
import type { EnqueueReceipt } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import { AfieldError } from '../model/errors.js';
import type { NotDoneOperation, Target } from '../model/states.js';
import type { Endings } from './endings.js';
import type { Failures } from './failures.js';
import { newHeader, partsOf } from './new-header.js';
import { receiptOf } from './receipt.js';
import { derivedFrom, derivedKey, storedKey } from './keys.js';
import type { Queue } from './queue.js';
import type { Reports } from './reports.js';
import { restOf } from './rest.js';
import {
  isUnplanned,
  sequenceOf,
  type Header,
  type PlanHeader,
  type StoredFailure,
  type StoredOperation,
} from './stored.js';
import type { TakenOver } from './taken-over.js';

/** A failure that is queued anew, perhaps with another id or content. */
export interface Retried {
  readonly failure: StoredFailure;
  readonly edited?: { readonly action: string; readonly operation: StoredOperation };
}

/**
 * Queues anew what failed, or what a bulk operation did not do (R19). The new bulk operation is durable first and
 * names what it took over; then that is marked. A crash in between is made good before the new one runs
 * (`TakenOver`).
 */
export class Retries {
  readonly #queue: Queue;
  readonly #failures: Failures;
  readonly #reports: Reports;
  readonly #endings: Endings;
  readonly #takenOver: TakenOver;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #payloadOf: (bulkOperationId: string) => string;
  /** Ids of those that have marked all that they took over. */
  readonly #marked = new Set<string>();
  #working: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    queue: Queue;
    failures: Failures;
    reports: Reports;
    endings: Endings;
    takenOver: TakenOver;
    clock: Clock;
    newId: () => string;
    /** How the ids of its payloads begin. */
    payloadOf: (bulkOperationId: string) => string;
  }) {
    this.#queue = parts.queue;
    this.#failures = parts.failures;
    this.#reports = parts.reports;
    this.#endings = parts.endings;
    this.#takenOver = parts.takenOver;
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
        const asTheyAre = retried.flatMap(({ failure: { _id, refused }, edited }) =>
          refused === null && edited === undefined ? [_id] : [],
        );
        const entries = retried.map(retriedOperation);
        const receipt = await this.#append({ ...given, ...rateOf(ratePerSecond) }, entries, asTheyAre);
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
    const rest = await restOf(this.#queue, header);
    if (rest.length === 0) throw new AfieldError('nothing_left', `The bulk operation ${header.id} has no rest.`);
    const { target, lane, key, id, rate } = header;
    const given = { target, lane, ...rateOf(rate) };
    return this.#append({ ...given, key: derivedKey(key, isRest(header)), continues: id }, rest);
  }

  /** The one that took over the rest of this one, when whoever queued it has ended before that was marked. */
  async #continuationOf({ id }: Header): Promise<string | undefined> {
    await this.#queue.headers.loadNew();
    const found = this.#queue.headers.all().find(({ continues }) => continues === id);
    if (found !== undefined) await this.#takenOver.settle(found);
    return found?.id;
  }

  /** What a bulk operation has not done: the rest of a `failed` or cancelled one, what is still to do of any other (R5). */
  async notDone(bulkOperationId: string): Promise<readonly NotDoneOperation[]> {
    const found = await this.#queue.headers.find(bulkOperationId);
    const header = await this.#queue.headers.refresh(sequenceOf(found._id));
    if (isUnplanned(header)) return [];
    return (await restOf(this.#queue, header)).map(({ action, index, operation: { i, k, c } }) => ({
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
    if (!(await this.#takenOver.settle(anew))) return undefined;
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
   * What is chosen, judged by what is stored: another tab may have decided on some of it a moment ago, or whoever queued
   * it may have ended before it was marked.
   */
  async #chosen<One>(choose: () => readonly One[], failureOf: (one: One) => StoredFailure): Promise<readonly One[]> {
    await this.#queue.headers.loadNew();
    for (const header of this.#queue.headers.all()) {
      if (header.retries !== true || header.attempts > 0 || this.#marked.has(header.id)) continue;
      await this.#takenOver.settle(header);
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
    asTheyAre: readonly string[] = [],
  ): Promise<EnqueueReceipt | undefined> {
    const id = this.#newId();
    const operations = entries.map(({ operation }) => operation);
    const parts = { parts: partsOf(entries), payload: this.#payloadOf(id), queuedAt: this.#clock.wall() };
    this.#takenOver.takes(id, asTheyAre);
    const header = await this.#queue
      .append(newHeader({ ...given, id, ...parts }, operations), operations)
      .catch((error: unknown) => {
        this.#takenOver.takes(id, []);
        throw error;
      });
    if (!(await this.#takenOver.settle(header))) return undefined;
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
