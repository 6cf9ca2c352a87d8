import {
  createClient,
  type AnyAction,
  type Client,
  type ClientOptions,
  type ClientStatus,
  type FailedOperation,
} from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';

/** A document as a server or a store shows it. */
export type Stored = Record<string, unknown> & { readonly _rev: string; readonly _conflicts?: readonly string[] };

let stores = 0;

/**
 * A server under test with one database behind its fault proxy, and clients that replicate with it. Every retry comes soon,
 * and a pull only when it is asked for. Its functions may be taken out of it.
 */
export class SyncedBed {
  readonly #name: string;
  readonly #actions: readonly AnyAction[];
  #server: ServerUnderTest | undefined;
  #databases: TemporaryDatabases | undefined;
  #path = '';
  readonly #clients: Client[] = [];

  /** `name`: how the names of the clients' stores begin. */
  constructor(name: string, actions: readonly AnyAction[]) {
    this.#name = name;
    this.#actions = actions;
  }

  /** Before all tests. */
  async start(): Promise<void> {
    this.#server = await serverUnderTest();
  }

  /** After all tests. */
  async stop(): Promise<void> {
    await this.#server?.close();
  }

  /** A fresh database, with a validation of this body (`doc`, `old`), if any. */
  async begin(validation?: string): Promise<void> {
    this.#databases ??= temporaryDatabases(this.server.directUrl, this.server.admin);
    const rules = { _id: '_design/rules', validate_doc_update: `function (doc, old) { ${validation ?? ''} }` };
    const { name } = await this.#databases.create('records', validation === undefined ? {} : { docs: [rules] });
    this.#path = name;
  }

  /** After each test. */
  async end(): Promise<void> {
    await this.closeClients();
    await this.server.proxy.reset();
    await this.#databases?.dispose();
    this.#databases = undefined;
  }

  async closeClients(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.close()));
  }

  get server(): ServerUnderTest {
    if (this.#server === undefined) throw new Error('The bed was not started.');
    return this.#server;
  }

  /** The database behind the proxy. */
  get url(): string {
    return `${this.server.url}/${this.#path}`;
  }

  readonly open = (options: Partial<ClientOptions> = {}): Client => {
    const client = createClient({
      name: `${this.#name}-${String(stores++)}`,
      PouchDB: MemoryPouch,
      actions: this.#actions,
      server: this.url,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...this.server.admin }) },
      ramp: () => 1000,
      jitter: 0,
      pullEveryS: 3600,
      ...options,
    });
    this.#clients.push(client);
    return client;
  };

  /** A request to the database itself, past the proxy. */
  readonly ask = async (path: string, method = 'GET', body?: object): Promise<Stored> => {
    const { username, password } = this.server.admin;
    const headers = {
      authorization: `Basic ${btoa(`${username}:${password}`)}`,
      'content-type': 'application/json',
      accept: 'application/json',
    };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return (await (
      await fetch(`${this.server.directUrl}/${this.#path}/${path}`, { method, headers, ...sent })
    ).json()) as Stored;
  };

  readonly status = (client: Client, isSo: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
    firstValueFrom(client.status$.pipe(filter(isSo)));

  /** Nothing is left to be done here, and the push rests. */
  readonly pushed = (client: Client): Promise<ClientStatus> =>
    this.status(client, ({ push, pending }) => push.state === 'idle' && push.attempts > 0 && pending === 0);

  /** One more pull has come, and what it brought is healed. */
  readonly pulled = async (client: Client): Promise<void> => {
    const { pull } = await firstValueFrom(client.status$);
    client.syncNow();
    await this.status(
      client,
      (now) => now.pull.attempts > pull.attempts && now.pull.state === 'idle' && now.healing.state === 'idle',
    );
  };

  /** So many looks that whatever would go on has gone on. */
  readonly looks = async (client: Client): Promise<void> => {
    for (let look = 0; look < 3; look++) {
      await this.pulled(client);
      await this.pushed(client);
    }
  };

  readonly done = (client: Client): Promise<ClientStatus> =>
    this.status(client, ({ pending, state }) => pending === 0 && state !== 'running');

  readonly failures = (client: Client, count: number): Promise<readonly FailedOperation[]> =>
    firstValueFrom(client.failures$.pipe(filter((list) => list.length === count)));

  readonly local = (client: Client, id: string): Promise<Stored> =>
    client.documents.get(id, { conflicts: true }) as Promise<Stored>;

  readonly offline = (): void => {
    this.server.proxy.addRule({ when: {}, do: { type: 'answer', status: 503 } });
  };

  readonly online = async (client: Client): Promise<void> => {
    await this.server.proxy.reset();
    client.syncNow();
  };
}
