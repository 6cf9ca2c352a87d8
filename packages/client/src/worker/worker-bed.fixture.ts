import { Observable } from 'rxjs';
import type { Client } from '../model/client.js';
import type { Locks } from '../model/environment.js';
import { TestBed } from '../test-bed.fixture.js';
import { connectClient, type ConnectOptions, type RemoteClient } from './connect.js';
import type { Endpoint } from './endpoint.js';
import { serveClient } from './serve.js';

/** A test bed with channels between pages and workers: what a message is in Node, it is in a browser. */
export class WorkerBed extends TestBed {
  readonly #ports: MessagePort[] = [];
  readonly #ends: (() => void)[] = [];

  /** The two sides of a worker. */
  endpoints(): { readonly page: Endpoint & MessagePort; readonly worker: Endpoint & MessagePort } {
    const { port1, port2 } = new MessageChannel();
    this.#ports.push(port1, port2);
    return { page: port1, worker: port2 };
  }

  connect(page: Endpoint, options: ConnectOptions = {}): RemoteClient {
    const remote = connectClient(page, options);
    this.#ends.push(() => {
      remote.disconnect();
    });
    return remote;
  }

  serve(client: Client, worker: Endpoint, locks?: Locks): () => void {
    const end = serveClient(client, worker, locks === undefined ? {} : { locks });
    this.#ends.push(end);
    return end;
  }

  /** A client in a worker, and a page that is connected to it. */
  pair(client = this.open(), options: ConnectOptions = {}): { client: Client; remote: RemoteClient } {
    const { page, worker } = this.endpoints();
    this.serve(client, worker);
    return { client, remote: this.connect(page, options) };
  }

  override async close(): Promise<void> {
    for (const end of this.#ends) end();
    for (const port of this.#ports) port.close();
    await super.close();
  }
}

/** An observable that says how many listen to it. */
export function counted<Value>(values: Observable<Value>): { values: Observable<Value>; listeners(): number } {
  let listeners = 0;
  return {
    values: new Observable((subscriber) => {
      listeners++;
      const subscription = values.subscribe(subscriber);
      return () => {
        listeners--;
        subscription.unsubscribe();
      };
    }),
    listeners: () => listeners,
  };
}
