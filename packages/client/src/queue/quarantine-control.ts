import type { EnqueueReceipt } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import { AfieldError } from '../model/errors.js';
import type { QuarantineDecision, QuarantineKind } from '../model/quarantine.js';
import type { Target } from '../model/states.js';
import type { Entry } from './content-hash.js';
import { isClosedByFailure, type Endings } from './endings.js';
import { storedKey, takenKey } from './keys.js';
import { newHeader, partsOf } from './new-header.js';
import type { Quarantine } from './quarantine.js';
import { secondOperation } from './quarantined.js';
import type { Queue } from './queue.js';
import { receiptOf } from './receipt.js';
import { quarantineDoc, type Header, type StoredQuarantine } from './stored.js';
import { withdraw } from './withdrawal.js';

/** What is queued when a person lets a second version count: its operations have keys of their own. */
export interface TakenSecond {
  readonly target: Target;
  readonly lane: string | null;
  readonly entries: readonly Entry[];
}

/**
 * Lets the second version of a conflict count. Answers with what is to be queued, or with undefined when it has done
 * itself what is to be done: then it may be asked again, and must not do it twice.
 */
export type TakeSecond = (entry: StoredQuarantine) => Promise<TakenSecond | undefined>;

const decisions: ReadonlySet<unknown> = new Set<QuarantineDecision>(['keep-first', 'take-second', 'discard']);

/**
 * What a person does with conflicts. A second version is queued first, as a bulk operation that names the entry, then the
 * entry is marked: a crash in between is made good before the new one runs. Of two that were queued at once the first that
 * marks the entry stays; the other is withdrawn before it runs.
 */
export class QuarantineControl {
  readonly #quarantine: Quarantine;
  readonly #queue: Queue;
  readonly #endings: Endings;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #payloadOf: (bulkOperationId: string) => string;
  readonly #hooks = new Map<QuarantineKind, TakeSecond>([
    ['operation', (entry) => Promise.resolve(operationOf(entry))],
  ]);
  #working: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    quarantine: Quarantine;
    queue: Queue;
    endings: Endings;
    clock: Clock;
    newId: () => string;
    /** How the ids of its payloads begin. */
    payloadOf: (bulkOperationId: string) => string;
  }) {
    this.#quarantine = parts.quarantine;
    this.#queue = parts.queue;
    this.#endings = parts.endings;
    this.#clock = parts.clock;
    this.#newId = parts.newId;
    this.#payloadOf = parts.payloadOf;
  }

  /** Says what `take-second` does with entries of this kind. */
  taking(kind: QuarantineKind, take: TakeSecond): void {
    this.#hooks.set(kind, take);
  }

  /** Durable when it resolves. Answers with what was queued, if anything. */
  resolve(quarantineId: string, decision: QuarantineDecision): Promise<EnqueueReceipt | undefined> {
    if (!decisions.has(decision)) {
      const message = `There is no decision "${String(decision)}" (${[...decisions].join(', ')}).`;
      return Promise.reject(new AfieldError('invalid_decision', message));
    }
    const result = this.#working.then(() => this.#resolve(quarantineId, decision));
    this.#working = result.catch(() => undefined); // the next one does not care how this one ended
    return result;
  }

  async #resolve(quarantineId: string, decision: QuarantineDecision): Promise<EnqueueReceipt | undefined> {
    const entry = await this.#openEntry(quarantineId, decision);
    if (decision !== 'take-second') {
      if (!(await this.#mark(entry, decision, undefined))) throw alreadyResolved();
      return undefined;
    }
    const header = await this.#queueSecond(entry);
    if (header === undefined) {
      if (!(await this.#mark(entry, decision, undefined))) throw alreadyResolved();
      return undefined;
    }
    if (!(await this.settle(header))) throw alreadyResolved();
    return receiptOf(header);
  }

  /**
   * Marks the entry whose second version this bulk operation queues, if it is not marked yet. One that came too late is
   * withdrawn, unless it runs already. Answers whether it stays.
   */
  async settle(header: Header): Promise<boolean> {
    for (;;) {
      const entry = await this.#queue.docs.read(header.taken ?? '', quarantineDoc);
      if (entry === undefined) return true;
      const { resolution } = entry;
      if (resolution?.bulkOperationId === header.id && resolution.decision === 'take-second') return true;
      if (resolution === undefined || isClosedByFailure(entry)) {
        if (await this.#mark(entry, 'take-second', header.id)) return true;
        continue;
      }
      const after = await withdraw(this.#queue.headers, header);
      return after.state !== 'cancelled';
    }
  }

  /** As it is stored: another tab may have decided a moment ago, or ended before it had marked what it has queued. */
  async #openEntry(quarantineId: string, decision: QuarantineDecision): Promise<StoredQuarantine> {
    const isOurs = typeof (quarantineId as unknown) === 'string' && quarantineId.startsWith('u:');
    const find = (): Promise<StoredQuarantine | undefined> => this.#queue.docs.read(quarantineId, quarantineDoc);
    let entry = isOurs ? await find() : undefined;
    if (entry === undefined) {
      const hint = 'Take the name from `quarantineId` of listQuarantined().';
      throw new AfieldError('unknown_quarantine', `There is no such conflict on this device. ${hint}`);
    }
    await this.#queue.headers.loadNew();
    const queued = this.#queue.headers.all().find(({ taken }) => taken === quarantineId);
    const isOpen = (one: StoredQuarantine): boolean =>
      one.resolution === undefined || (decision === 'take-second' && isClosedByFailure(one));
    if (isOpen(entry) && queued !== undefined) {
      await this.settle(queued);
      entry = (await find()) ?? entry;
    }
    if (isOpen(entry)) return entry;
    this.#quarantine.added([entry]);
    throw alreadyResolved();
  }

  /** Answers whether this has marked it, and ended its failure: false when someone else was faster. */
  #mark(entry: StoredQuarantine, decision: QuarantineDecision, bulkOperationId?: string): Promise<boolean> {
    const by = bulkOperationId === undefined ? {} : { bulkOperationId };
    return this.#endings.close({ ...entry, resolution: { decision, at: this.#clock.wall(), ...by } });
  }

  async #queueSecond(entry: StoredQuarantine): Promise<Header | undefined> {
    const id = this.#newId();
    const common = { id, queuedAt: this.#clock.wall(), taken: entry._id };
    if (entry.content !== undefined) {
      const { subjects, total, ...content } = entry.content;
      const made = newHeader({ ...common, ...content, key: takenKey(entry.key, entry.hash).key }, []);
      return this.#queue.numbers.take({ ...made, total, subjects });
    }
    const take = this.#hooks.get(entry.kind);
    if (take === undefined) {
      const message = `This client cannot let the second version of a conflict of the kind "${entry.kind}" count.`;
      throw new AfieldError('not_supported', message);
    }
    const taken = await take(entry);
    if (taken === undefined) return undefined;
    const { target, lane, entries } = taken;
    const operations = entries.map(({ operation }) => operation);
    const parts = partsOf(entries);
    const retries = operations.some(({ f }) => f !== undefined) ? { retries: true } : {};
    const given = { ...common, ...retries, target, lane, parts, key: this.#newId(), payload: this.#payloadOf(id) };
    return this.#queue.append(newHeader(given, operations), operations);
  }
}

function operationOf(entry: StoredQuarantine): TakenSecond | undefined {
  const { as, key, hash } = entry;
  if (as === undefined) return undefined;
  const { target, lane, action } = as;
  const operation = { ...secondOperation(entry), ...storedKey(takenKey(key, hash)) };
  return { target, lane, entries: [{ action, operation }] };
}

function alreadyResolved(): AfieldError {
  return new AfieldError('already_resolved', 'A person has decided on this conflict already.');
}
