import type { Observable } from 'rxjs';
import type { Client } from '../model/client.js';
import { AfieldError } from '../model/errors.js';
import { hearOn } from './endpoint.js';
import { Feed } from './feed.js';
import { awaited, toWorker, type Asked, type Observed, type ToPage, type ToWorker } from './messages.js';
import { wireErrorOf } from './wire-error.js';

/** The worker's side of one page: answers its calls, feeds its observables. */
export class ServedPage {
  readonly #client: Client;
  readonly #port: MessagePort;
  readonly #feeds = new Map<number, Feed>();
  readonly #ending = new AbortController();

  /** `gone` is called once, when the page is. */
  constructor(client: Client, port: MessagePort, gone: () => void) {
    this.#client = client;
    this.#port = port;
    this.#ending.signal.addEventListener('abort', gone);
    port.addEventListener('close', () => {
      this.end();
    });
    hearOn(
      port,
      toWorker,
      (message) => {
        this.#hear(message);
      },
      (data) => {
        this.#refuse(data);
      },
    );
  }

  get ended(): AbortSignal {
    return this.#ending.signal;
  }

  /** Forgets the page. What it has called goes on; nobody hears the answer. */
  end(): void {
    if (this.ended.aborted) return;
    this.#ending.abort();
    for (const feed of this.#feeds.values()) feed.end();
    this.#feeds.clear();
    this.#port.close();
  }

  #hear(message: ToWorker): void {
    switch (message.kind) {
      case 'call':
        void this.#answer(message.id, message.asked);
        return;
      case 'subscribe':
        this.#subscribe(message.id, message.observed);
        return;
      case 'unsubscribe':
        this.#feeds.get(message.id)?.end();
        this.#feeds.delete(message.id);
        return;
      case 'took':
        this.#feeds.get(message.id)?.took();
        return;
      case 'visible':
        // A worker does not hear of it by itself (R14).
        if (message.visible) void this.#called({ on: 'client', method: 'syncNow', args: [] }).catch(() => undefined);
        return;
      case 'told':
        return; // for whoever has asked
    }
  }

  /** A call that nobody answers would stay open for ever. */
  #refuse(data: unknown): void {
    const { success, data: message } = awaited.safeParse(data);
    if (!success) return;
    const unknown = new AfieldError(
      'unknown_call',
      'The worker does not know this call. It may run another version of Afield: close all tabs of the app.',
    );
    const kind = message.kind === 'call' ? 'refusal' : 'error';
    this.#send({ kind, id: message.id, error: wireErrorOf(unknown) });
  }

  async #answer(id: number, asked: Asked): Promise<void> {
    let answer: ToPage;
    try {
      answer = { kind: 'answer', id, value: await this.#called(asked) };
    } catch (error) {
      answer = { kind: 'refusal', id, error: wireErrorOf(error) };
    }
    // What was shown before it was answered arrives before the answer.
    for (const feed of this.#feeds.values()) feed.flush();
    try {
      this.#send(answer);
    } catch {
      const error = new AfieldError('not_plain_data', 'The answer cannot be sent to the page: it is no plain data.');
      this.#send({ kind: 'refusal', id, error: wireErrorOf(error) });
    }
  }

  async #called(asked: Asked): Promise<unknown> {
    switch (asked.on) {
      case 'client':
        return (await Reflect.apply(this.#client[asked.method], this.#client, asked.args)) as unknown;
      case 'index': {
        const index = this.#client.index(asked.index);
        return (await Reflect.apply(index[asked.method], index, asked.args)) as unknown;
      }
      case 'sync':
        return (await Reflect.apply(this.#client.sync[asked.method], this.#client.sync, asked.args)) as unknown;
      case 'storeId':
        return this.#client.storeId;
    }
  }

  #subscribe(id: number, observed: Observed): void {
    const send = (message: ToPage): void => {
      this.#send(message);
    };
    try {
      const keepsAll = observed.on === 'client' && observed.observable === 'events$';
      this.#feeds.set(id, new Feed(id, this.#observable(observed), keepsAll, send));
    } catch (error) {
      send({ kind: 'error', id, error: wireErrorOf(error) });
    }
  }

  #observable(observed: Observed): Observable<unknown> {
    return observed.on === 'client' ? this.#client[observed.observable] : this.#client.index(observed.index).state$;
  }

  #send(message: ToPage): void {
    if (!this.ended.aborted) this.#port.postMessage(message);
  }
}
