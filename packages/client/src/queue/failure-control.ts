import type { EnqueueRequest, FailureFilter, OperationInput, RetryOptions, RetryReceipt } from '../model/client.js';
import { AfieldError, InvalidRequestError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { AnyAction } from '../model/handler.js';
import type { FailedOperation } from '../model/states.js';
import type { ListFilter } from './failure-filter.js';
import type { Failures } from './failures.js';
import { checkRequest } from './request.js';
import type { Retried, Retries } from './retries.js';
import type { StoredFailure } from './stored.js';

/** Documents whose attachments are held in memory at once. */
const revertedAtOnce = 20;

/**
 * Brings documents back to the server's version, those that can go back now. `keep` is called with the local versions before
 * they are given up. Answers which are back.
 */
export type RevertDocuments = (
  ids: readonly string[],
  keep: (local: ReadonlyMap<string, Doc>) => Promise<void>,
) => Promise<readonly string[]>;

/**
 * What a person does with failed operations: list, retry, edit and retry, discard (R19). Needs loaded failures; filters,
 * options and operations are the client's own, checked copies.
 */
export class FailureControl {
  readonly #failures: Failures;
  readonly #retries: Retries;
  readonly #actions: ReadonlyMap<string, AnyAction>;
  readonly #breathe: () => Promise<void>;
  readonly #sendAgain: (ids: readonly string[]) => Promise<void>;
  readonly #revertDocuments: RevertDocuments | undefined;

  constructor(parts: {
    failures: Failures;
    retries: Retries;
    actions: ReadonlyMap<string, AnyAction>;
    breathe: () => Promise<void>;
    /** Sends documents once more that the server has refused. */
    sendAgain: (ids: readonly string[]) => Promise<void>;
    /** Undefined where nothing is replicated. */
    revertDocuments: RevertDocuments | undefined;
  }) {
    this.#failures = parts.failures;
    this.#retries = parts.retries;
    this.#actions = parts.actions;
    this.#breathe = parts.breathe;
    this.#sendAgain = parts.sendAgain;
    this.#revertDocuments = parts.revertDocuments;
  }

  list(filter: ListFilter): readonly FailedOperation[] {
    return this.#failures.matching(filter).map(({ shown }) => shown);
  }

  retry(filter: FailureFilter, options: RetryOptions): Promise<RetryReceipt> {
    return this.#retry(() => this.#open(filter).map((failure) => ({ failure })), options);
  }

  async edit(failureId: string, operation: OperationInput, options: RetryOptions): Promise<RetryReceipt> {
    const { action } = this.#operation(failureId);
    if ((operation as OperationInput | null | undefined)?.key !== undefined) {
      const message = 'cannot be given: the key of a retry is derived from the one of the failure';
      throw new InvalidRequestError([{ index: 0, field: 'key', message }]);
    }
    const request: EnqueueRequest = { target: 'local', actions: [{ action, operations: [operation] }] };
    const { operations } = await checkRequest(request, this.#actions, true, this.#breathe);
    return this.#retry(() => {
      const { failure } = this.#operation(failureId);
      return operations.map((edited) => ({ failure, edited: { action, operation: edited } }));
    }, options);
  }

  discard(filter: FailureFilter): Promise<number> {
    return this.#retries.discard(() => this.#open(filter));
  }

  /** Some documents at a time: each of them is back, with its failures ended, or as it was. */
  async revert(filter: FailureFilter): Promise<number> {
    if (this.#revertDocuments === undefined) {
      throw new AfieldError(
        'no_replication',
        'Without replication with a server no document goes back to its version.',
      );
    }
    const refused = this.#open(filter).filter(({ refused: rev }) => rev !== null);
    const ids = [...new Set(refused.flatMap(({ id }) => id ?? []))];
    let count = 0;
    for (let from = 0; from < ids.length; from += revertedAtOnce) {
      const keep = (local: ReadonlyMap<string, Doc>): Promise<void> =>
        this.#retries.keep(() =>
          [...local].flatMap(([id, doc]) =>
            this.#openOf(id).map((failure) => ({ ...failure, local: JSON.stringify(doc) })),
          ),
        );
      const back = await this.#revertDocuments(ids.slice(from, from + revertedAtOnce), keep);
      count += await this.#retries.reverted(() => back.flatMap((id) => this.#openOf(id)));
      await this.#breathe();
    }
    return count;
  }

  /** All that the server has refused of a document and that is open: they go back together. */
  #openOf(id: string): StoredFailure[] {
    return this.#failures.refusedOf(id).filter(({ resolution }) => resolution === undefined);
  }

  /** Refused documents are sent again as they are, unless the operation was edited: then a new revision follows. */
  async #retry(choose: () => readonly Retried[], { ratePerSecond }: RetryOptions): Promise<RetryReceipt> {
    const isSentAgain = ({ failure, edited }: Retried): boolean => failure.refused !== null && edited === undefined;
    const again = choose().filter(isSentAgain);
    const bulkOperations = await this.#retries.retry(() => choose().filter((one) => !isSentAgain(one)), ratePerSecond);
    await this.#sendAgain(again.flatMap(({ failure: { id } }) => id ?? []));
    return {
      bulkOperations,
      queued: bulkOperations.reduce((sum, { total }) => sum + total, 0),
      sentAgain: again.length,
    };
  }

  #open(filter: FailureFilter): StoredFailure[] {
    return this.#failures.matching(filter).map(({ stored }) => stored);
  }

  #operation(failureId: string): { failure: StoredFailure; action: string } {
    const failure = this.#failures.get(failureId);
    if (failure?.resolution?.how === 'retried') {
      const { bulkOperationId } = failure.resolution;
      throw new AfieldError('unknown_failure', `This failure was retried already, as ${bulkOperationId}.`);
    }
    if (failure?.resolution !== undefined) {
      throw new AfieldError('unknown_failure', `This failure was ${failure.resolution.how} already.`);
    }
    if (failure === undefined) {
      const hint = 'Take the name from `failureId` of listFailures().';
      throw new AfieldError('unknown_failure', `There is no open failure ${String(failureId)} on this device. ${hint}`);
    }
    if (failure.action === null) {
      throw new AfieldError('not_an_operation', 'An edit of the app was refused: edit the document itself.');
    }
    return { failure, action: failure.action };
  }
}
