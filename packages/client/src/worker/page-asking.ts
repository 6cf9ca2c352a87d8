import { hearGreetings, hearOn, type Endpoint } from './endpoint.js';
import { toWorker, type Question, type ToPage, type ToWorker } from './messages.js';
import { newUuid } from '../tabs/new-uuid.js';

/** The page has no answer. */
export class NotToldError extends Error {}

interface Waiting {
  readonly question: Question;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** The worker's questions to its page: they wait until there is one. */
export class PageAsking {
  readonly #waiting = new Map<string, Waiting>();
  #port: MessagePort | undefined;

  /** `seen` is called when the page connects, and whenever it came into view or went out of it. */
  constructor(endpoint: Endpoint, seen: (isVisible: boolean) => void = () => undefined) {
    // Heard as long as the worker lives: a page may connect again.
    hearGreetings(endpoint, (said, port) => {
      if (said.afield !== 'connect' || port === undefined) return;
      this.#port = port;
      hearOn(port, toWorker, (message) => {
        if (message.kind === 'told') this.#told(message);
        if (message.kind === 'visible' && port === this.#port) seen(message.visible);
      });
      seen(said.visible);
      // Nobody was there, or who was there has gone without an answer.
      for (const [id, { question }] of this.#waiting) this.#send({ kind: 'ask', id, question });
    });
  }

  /** Rejects with `NotToldError` when the page has no answer. */
  ask(question: Question): Promise<unknown> {
    const id = newUuid();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { question, resolve, reject });
      this.#send({ kind: 'ask', id, question });
    });
  }

  #send(message: ToPage): void {
    this.#port?.postMessage(message);
  }

  #told({ id, isGiven, value }: ToWorker & { kind: 'told' }): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (isGiven) waiting?.resolve(value);
    else waiting?.reject(new NotToldError('The page has no answer.'));
  }
}
