import {
  InvalidRequestError,
  type Client,
  type FailedOperation,
  type NotDoneOperation,
  type RetryReceipt,
} from '@afield/client';
import { fieldsOf, operationOf, type Field } from '../operation-fields.js';
import { count } from '../words.js';

/** What a person is about to decide. */
export interface DecisionsState {
  /** Failures that were retried or discarded, oldest first. */
  readonly resolved: readonly FailedOperation[];
  /** Only failures of this code are shown. */
  readonly code: string | undefined;
  /** Operations a second, as written; empty: as fast as it goes. */
  readonly rate: string;
  readonly rateProblem: string | undefined;
  readonly edit: EditState | undefined;
  readonly question: Question | undefined;
  /** What bulk operations have left undone, as far as the person looked at it, by bulk operation. */
  readonly undone: ReadonlyMap<string, readonly NotDoneOperation[]>;
  /** What the last decision did. */
  readonly said: string;
}

export interface EditState {
  readonly failure: FailedOperation;
  readonly fields: readonly Field[];
  /** What is wrong, by field; under the empty name what is wrong with the whole. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Asked before what cannot be taken back. */
export interface Question {
  readonly title: string;
  readonly text: string;
  readonly answer: string;
  readonly act: () => void;
}

export const nothingDecided: DecisionsState = {
  resolved: [],
  code: undefined,
  rate: '',
  rateProblem: undefined,
  edit: undefined,
  question: undefined,
  undone: new Map(),
  said: '',
};

/** What a person does with bulk operations and failures (R19). Each of them is done once, however often it is pressed. */
export class Decisions {
  readonly #working = new Set<string>();

  constructor(
    private readonly client: Client,
    private readonly state: () => DecisionsState,
    private readonly change: (change: Partial<DecisionsState>) => void,
    private readonly notice: (error: unknown) => void,
  ) {}

  pause(bulkOperationId: string): void {
    this.#once(bulkOperationId, () => this.client.pause(bulkOperationId));
  }

  resume(bulkOperationId: string): void {
    this.#once(bulkOperationId, () => this.client.resume(bulkOperationId));
  }

  cancel(bulkOperationId: string): void {
    this.#once(bulkOperationId, () => this.client.cancel(bulkOperationId));
  }

  retryRest(bulkOperationId: string): void {
    this.#once(bulkOperationId, () => this.client.retryRest(bulkOperationId));
  }

  lookAtRest(bulkOperationId: string): void {
    this.#once(`rest ${bulkOperationId}`, async () => {
      const operations = await this.client.listNotDone(bulkOperationId);
      this.change({ undone: new Map(this.state().undone).set(bulkOperationId, operations) });
    });
  }

  show(code: string | undefined): void {
    this.change({ code });
  }

  setRate(rate: string): void {
    this.change({ rate, rateProblem: undefined });
  }

  retry({ failureId }: FailedOperation): void {
    this.#once(failureId, async () => this.#saidOf(await this.client.retryFailed({ failureId })));
  }

  /** Exactly those that the person saw: what fails meanwhile is not meant. */
  retryAll(failures: readonly FailedOperation[]): void {
    const rate = this.state().rate.trim();
    this.#once('all', async () => {
      try {
        const options = rate === '' ? {} : { ratePerSecond: Number(rate.replace(',', '.')) };
        this.#saidOf(await this.client.retryFailed({ failureId: idsOf(failures) }, options));
      } catch (error) {
        const issue = error instanceof InvalidRequestError ? error.issues[0] : undefined;
        if (issue?.field !== 'ratePerSecond') throw error;
        this.change({ rateProblem: `The rate ${issue.message}.` });
      }
    });
  }

  discard(failures: readonly FailedOperation[], what: string): void {
    this.change({
      question: {
        title: `Discard ${what}?`,
        text: 'It is not tried any more. What was asked for stays in the list below, to look at.',
        answer: 'Discard',
        act: () => {
          this.#once('discard', async () => {
            const discarded = await this.client.discard({ failureId: idsOf(failures) });
            this.change({ said: `${count(discarded, 'change', 'changes')} discarded.` });
          });
        },
      },
    });
  }

  answer(): void {
    const { question } = this.state();
    this.change({ question: undefined });
    question?.act();
  }

  closeQuestion(): void {
    this.change({ question: undefined });
  }

  startEdit(failure: FailedOperation): void {
    const fields = fieldsOf(failure.action, failure.operation);
    if (fields) this.change({ edit: { failure, fields, problems: new Map() } });
  }

  changeField(name: string, text: string): void {
    const { edit } = this.state();
    if (!edit) return;
    const problems = new Map([...edit.problems].filter(([field]) => field !== name));
    const fields = edit.fields.map((field) => (field.name === name ? { name, text } : field));
    this.change({ edit: { ...edit, fields, problems } });
  }

  closeEdit(): void {
    this.change({ edit: undefined });
  }

  saveEdit(): void {
    const { edit } = this.state();
    if (!edit) return;
    const { failureId } = edit.failure;
    const read = operationOf(edit.fields);
    if ('problems' in read) {
      this.change({ edit: { ...edit, problems: read.problems } });
      return;
    }
    this.#once(failureId, async () => {
      try {
        const receipt = await this.client.editAndRetry(failureId, read.operation);
        this.change({ edit: undefined });
        this.#saidOf(receipt);
      } catch (error) {
        const now = this.state().edit;
        if (now?.failure.failureId !== failureId) throw error;
        this.change({ edit: { ...now, problems: problemsOf(error, now.fields) } });
      }
    });
  }

  #saidOf({ queued, sentAgain }: RetryReceipt): void {
    const parts = [
      ...(queued > 0 ? [`${count(queued, 'change', 'changes')} queued again.`] : []),
      ...(sentAgain > 0 ? [`${count(sentAgain, 'record', 'records')} sent to the server again as it is now.`] : []),
    ];
    this.change({ said: parts.join(' ') });
  }

  #once(name: string, work: () => Promise<unknown>): void {
    if (this.#working.has(name)) return;
    this.#working.add(name);
    work()
      .catch((error: unknown) => this.notice(error))
      .finally(() => this.#working.delete(name));
  }
}

function idsOf(failures: readonly FailedOperation[]): readonly string[] {
  return failures.map(({ failureId }) => failureId);
}

/** By field of the form; what belongs to none of them is said for the whole. */
function problemsOf(error: unknown, fields: readonly Field[]): ReadonlyMap<string, string> {
  if (!(error instanceof InvalidRequestError)) {
    return new Map([['', error instanceof Error ? error.message : String(error)]]);
  }
  const problems = new Map<string, string>();
  for (const { field, message } of error.issues) {
    const [first = ''] = field.split('.');
    const name = fields.some((one) => one.name === first) ? first : '';
    if (!problems.has(name)) problems.set(name, name === field ? message : `${field}: ${message}`);
  }
  return problems;
}
