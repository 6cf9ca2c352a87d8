import { Observable, type Subscriber } from 'rxjs';
import type { Locks } from '../model/environment.js';
import { AfieldError, InvalidRequestError } from '../model/errors.js';
import { firstNotJson } from '../queue/request.js';
import { greet, hearGreetings, hearOn, type Endpoint } from './endpoint.js';
import { lifeOf } from './life.js';
import {
  toPage,
  wireVersion,
  type Asked,
  type Observed,
  type Question,
  type ToPage,
  type ToWorker,
} from './messages.js';
import { errorOf } from './wire-error.js';

export interface ConnectionParts {
  readonly locks: Locks | undefined;
  readonly isVisible: () => boolean;
  /** What the worker wants to know of the page. */
  readonly asked: (question: Question) => unknown;
  /** Called once, when it has ended; with the error when it was the worker that was lost. */
  readonly ended: (lost: AfieldError | undefined) => void;
}

/**
 * The page's side of the port.
 *
 *   connecting ──here──▶ connected ──▶ ended: closed by the page, or the worker lost
 *
 * What is called while it is connecting is on its way already.
 */
export class Connection {
  readonly #parts: ConnectionParts;
  readonly #port: MessagePort;
  readonly #calls = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  readonly #subscribers = new Map<number, Subscriber<unknown>>();
  readonly #ending = new AbortController();
  /** Why calls are refused. */
  #over: Error | undefined;
  #isHere = false;
  #ids = 0;

  constructor(worker: Endpoint, parts: ConnectionParts) {
    this.#parts = parts;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.addEventListener('close', () => {
      this.lose('The worker has ended');
    });
    hearOn(port1, toPage, (message) => {
      this.#hear(message);
    });
    this.#connect(worker, port2);
  }

  /** Rejects with what the client rejects with, and with `AfieldError` (`worker_lost`) when the worker is lost. */
  call(asked: Asked): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#over !== undefined) {
        reject(this.#over);
        return;
      }
      const id = this.#ids++;
      this.#calls.set(id, { resolve, reject });
      try {
        this.#send({ kind: 'call', id, asked });
      } catch {
        this.#calls.delete(id);
        reject(notPlainData(asked));
      }
    });
  }

  /** Nothing is sent before someone subscribes, nor after the last one has gone. */
  observe<Value>(observed: Observed): Observable<Value> {
    return new Observable((subscriber: Subscriber<unknown>) => {
      if (this.#over !== undefined) {
        this.#endOf(subscriber);
        return undefined;
      }
      const id = this.#ids++;
      this.#subscribers.set(id, subscriber);
      this.#send({ kind: 'subscribe', id, observed });
      return () => {
        if (this.#subscribers.delete(id) && this.#over === undefined) this.#send({ kind: 'unsubscribe', id });
      };
    }) as Observable<Value>;
  }

  /** Why it has ended; undefined while it has not. */
  get over(): Error | undefined {
    return this.#over;
  }

  tellVisible(visible: boolean): void {
    if (this.#over === undefined) this.#send({ kind: 'visible', visible });
  }

  /** The page lets go. Later calls are refused with `why`; observables complete. */
  end(why: Error): void {
    this.#end(why, undefined);
  }

  /** The worker says that something has failed. Once it serves, these are errors of the app's own code; it lives. */
  failed(): void {
    if (!this.#isHere) this.lose('The worker could not be loaded, or threw before it called serveClient');
  }

  lose(what: string): void {
    const lost = new AfieldError(
      'worker_lost',
      `${what}. What was queued is kept: make a new worker, and connect to it.`,
    );
    this.#end(lost, lost);
  }

  #connect(worker: Endpoint, port: MessagePort): void {
    const { locks, isVisible } = this.#parts;
    const life = lifeOf(locks);
    const connect = async (workersLife: string): Promise<void> => {
      await life.hold();
      if (this.#over !== undefined) return;
      greet(worker, { afield: 'connect', v: wireVersion, life: life.tab, visible: isVisible() }, [port]);
      const isGone = await life.whenFree(workersLife, this.#ending.signal).catch(() => false);
      if (isGone) this.lose('The worker has ended');
    };
    const unhear = hearGreetings(worker, (said) => {
      if (said.afield !== 'here' || this.#isHere) return;
      this.#isHere = true;
      if (said.v === wireVersion) void connect(said.life);
      else this.lose('The worker runs another version of Afield (close all tabs of the app)');
    });
    const failed = (): void => {
      this.failed();
    };
    worker.addEventListener('error', failed);
    this.#ending.signal.addEventListener('abort', () => {
      unhear();
      worker.removeEventListener('error', failed);
      life.release();
      port.close(); // of no use any more, also where it was never sent
    });
    greet(worker, { afield: 'knock' });
  }

  #hear(message: ToPage): void {
    switch (message.kind) {
      case 'answer':
        this.#taken(message.id)?.resolve(message.value);
        return;
      case 'refusal':
        this.#taken(message.id)?.reject(errorOf(message.error));
        return;
      case 'next': {
        for (const value of message.values) this.#subscribers.get(message.id)?.next(value);
        if (this.#subscribers.has(message.id)) this.#send({ kind: 'took', id: message.id });
        return;
      }
      case 'complete':
        this.#left(message.id)?.complete();
        return;
      case 'error':
        this.#left(message.id)?.error(errorOf(message.error));
        return;
      case 'ask':
        void this.#tell(message.id, message.question);
        return;
    }
  }

  async #tell(id: string, question: Question): Promise<void> {
    try {
      const value = await this.#parts.asked(question);
      if (this.#over === undefined) this.#send({ kind: 'told', id, isGiven: true, value });
    } catch {
      if (this.#over === undefined) this.#send({ kind: 'told', id, isGiven: false });
    }
  }

  #taken(id: number): { resolve(value: unknown): void; reject(error: Error): void } | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    return call;
  }

  #left(id: number): Subscriber<unknown> | undefined {
    const subscriber = this.#subscribers.get(id);
    this.#subscribers.delete(id);
    return subscriber;
  }

  #end(why: Error, lost: AfieldError | undefined): void {
    if (this.#over !== undefined) return;
    this.#over = why;
    this.#ending.abort();
    this.#port.close();
    for (const { reject } of this.#calls.values()) reject(why);
    this.#calls.clear();
    const subscribers = [...this.#subscribers.values()];
    this.#subscribers.clear();
    for (const subscriber of subscribers) this.#endOf(subscriber);
    this.#parts.ended(lost);
  }

  /** A page that shows the last state of a worker that is gone would show something wrong for ever. */
  #endOf(subscriber: Subscriber<unknown>): void {
    if (this.#over instanceof AfieldError && this.#over.code === 'worker_lost') subscriber.error(this.#over);
    else subscriber.complete();
  }

  #send(message: ToWorker): void {
    this.#port.postMessage(message);
  }
}

/** Functions and the like cannot go to another thread. */
function notPlainData(asked: Asked): InvalidRequestError {
  const args = asked.on === 'storeId' ? [] : asked.args;
  const field = args.map(firstNotJson).find((path) => path !== undefined) ?? '';
  return new InvalidRequestError([{ index: -1, field, message: 'cannot be sent to the worker: it is no plain data' }]);
}
