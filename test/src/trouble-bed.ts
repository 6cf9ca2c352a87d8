import {
  createClient,
  defineDocumentAction,
  type Client,
  type ClientOptions,
  type ClientStatus,
  type FailedOperation,
} from '@afield/client';
import {
  serverUnderTest,
  type Answer,
  type Forward,
  type Interceptor,
  type ProxyRequest,
  temporaryDatabases,
  type ServerUnderTest,
  type TemporaryDatabases,
} from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { expect } from 'vitest';
import { z } from 'zod/mini';

export type Stored = Record<string, unknown>;

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});

/** What a database holds, to be put back later. */
export interface Backup {
  /** All leaves with their histories. */
  readonly docs: readonly Stored[];
  /** The mark of the push; undefined in a backup that knows documents only. */
  readonly mark: Stored | undefined;
}

let stores = 0;

/** A server in trouble: one database of documents that a test takes away, makes anew, and puts back as it was. */
export class TroubleBed {
  records = '';
  /** The bodies of requests, by the end of their path, in their order. */
  readonly sent: { method: string; path: string; body: Stored }[] = [];
  /** Called with each request, before it goes on. */
  onRequest: (request: ProxyRequest) => Promise<void> | void = () => undefined;
  /** Answers in the server's place, or lets it answer itself. */
  answer: Interceptor = () => undefined;
  readonly #clients: Client[] = [];
  readonly #underWay = new Set<Promise<unknown>>();
  #isAway: Promise<void> | undefined;

  private constructor(
    readonly server: ServerUnderTest,
    readonly databases: TemporaryDatabases,
  ) {}

  static async open(): Promise<TroubleBed> {
    const server = await serverUnderTest();
    const bed = new TroubleBed(server, temporaryDatabases(server.directUrl, server.admin));
    await bed.begin();
    return bed;
  }

  /** Before each test: an empty database that everyone may use, and a proxy without faults. */
  async begin(): Promise<void> {
    const { name } = await this.databases.create('records', { security: 'everyone' });
    this.records = `${this.server.url}/${name}`;
    this.sent.length = 0;
    this.onRequest = () => undefined;
    this.answer = () => undefined;
    this.server.proxy.onRequest((request) => {
      if (request.database !== name) return;
      const body = request.body.length === 0 ? {} : (request.json() as Stored);
      this.sent.push({ method: request.method, path: request.path.slice(name.length + 1), body });
    });
    this.server.proxy.intercept(async (request, forward) => {
      await this.onRequest(request);
      while (this.#isAway !== undefined) await this.#isAway;
      const answer = this.#answered(request, forward);
      this.#underWay.add(answer);
      try {
        return await answer;
      } finally {
        this.#underWay.delete(answer);
      }
    });
  }

  async #answered(request: ProxyRequest, forward: Forward): Promise<Answer> {
    return (await this.answer(request, forward)) ?? forward();
  }

  /** After each test. */
  async end(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.close()));
    await this.server.proxy.reset();
    await this.databases.dispose();
  }

  newName(): string {
    return `trouble-${String(stores++)}`;
  }

  /** A client of an admin, on a store of its own unless `name` says which. Every retry and every pull comes soon. */
  client(options: Partial<ClientOptions> = {}): Client {
    const client = createClient({
      name: this.newName(),
      PouchDB: MemoryPouch,
      actions: [setColour],
      server: this.records,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...this.server.admin }) },
      ramp: () => 200,
      jitter: 0,
      pullEveryS: 1,
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  status(client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> {
    return firstValueFrom(client.status$.pipe(filter(is)));
  }

  /** Everything was pushed that the push knows of. */
  pushed(client: Client): Promise<ClientStatus> {
    return this.status(
      client,
      ({ pending, push }) => pending === 0 && push.state === 'idle' && push.left === 0 && push.attempts > 0,
    );
  }

  /** Resolves when so many failures are open. */
  failures(client: Client, count: number): Promise<readonly FailedOperation[]> {
    return firstValueFrom(client.failures$.pipe(filter((list) => list.length === count)));
  }

  paint(client: Client, ids: readonly string[], to: string): Promise<unknown> {
    return client.enqueue({
      target: 'local',
      actions: [{ action: 'set-colour', operations: ids.map((id) => ({ id, to })) }],
    });
  }

  /** Asks the server itself, as its admin, past all faults. */
  async ask(path: string, method = 'GET', body?: object, database = this.records): Promise<Stored> {
    const { username, password } = this.server.admin;
    const response = await fetch(`${this.server.directUrl}/${new URL(database).pathname.slice(1)}${path}`, {
      method,
      headers: { authorization: `Basic ${btoa(`${username}:${password}`)}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await response.json()) as Stored;
  }

  /** Ids of the live documents on the server, design documents not among them. */
  async ids(): Promise<readonly string[]> {
    const { rows } = (await this.ask('/_all_docs')) as { rows?: { id: string }[] };
    return (rows ?? []).flatMap(({ id }) => (id.startsWith('_') ? [] : [id]));
  }

  /** How many live documents a database has. */
  async countIn(url: string): Promise<number> {
    const { username, password } = this.server.admin;
    const response = await fetch(url, { headers: { authorization: `Basic ${btoa(`${username}:${password}`)}` } });
    return ((await response.json()) as { doc_count: number }).doc_count;
  }

  /** Resolves when these, and no others, are on the server. */
  async arrived(ids: readonly string[]): Promise<void> {
    await expect.poll(() => this.ids(), { timeout: 10_000 }).toEqual([...ids].sort());
  }

  /** The name of the mark that a client writes. */
  async markOf(client: Client): Promise<string> {
    return `/_local/${encodeURIComponent(`afield-push-v1-${await client.storeId}`)}`;
  }

  /** Resolves when the mark says that all is there that the push has brought: all of the store, or `least`. */
  async marked(client: Client, least?: number): Promise<void> {
    const path = await this.markOf(client);
    const since = least ?? ((await client.documents.info()) as { update_seq: number }).update_seq;
    await expect.poll(async () => (await this.ask(path))['since'], { timeout: 10_000 }).toBeGreaterThanOrEqual(since);
  }

  /** A backup as a copy of the database's file; without `mark`: as a list of its documents. */
  async backUp(mark?: string, database = this.records): Promise<Backup> {
    const { results } = (await this.ask('/_changes?style=all_docs', 'GET', undefined, database)) as {
      results: { id: string; changes: { rev: string }[] }[];
    };
    const docs = results.flatMap(({ id, changes }) => changes.map(({ rev }) => ({ id, rev })));
    const answer = (await this.ask('/_bulk_get?revs=true&attachments=true', 'POST', { docs }, database)) as {
      results: { docs: { ok?: Stored }[] }[];
    };
    return {
      docs: answer.results.flatMap((one) => one.docs.flatMap(({ ok }) => (ok === undefined ? [] : [ok]))),
      mark: mark === undefined ? undefined : await this.ask(mark, 'GET', undefined, database),
    };
  }

  async remove(database = this.records): Promise<void> {
    expect(await this.ask('', 'DELETE', undefined, database)).toEqual({ ok: true });
  }

  async create(database = this.records): Promise<void> {
    // The embedded server makes a database for a request that comes just after its end: then it is there, and empty.
    const { ok, error } = await this.ask('', 'PUT', undefined, database);
    expect(ok === true || error === 'file_exists').toBe(true);
    const nobody = { names: [], roles: [] };
    await this.ask('/_security', 'PUT', { admins: { names: [], roles: ['_admin'] }, members: nobody }, database);
  }

  recreate(database = this.records): Promise<void> {
    return this.#whileAway(async () => {
      await this.remove(database);
      await this.create(database);
    });
  }

  restore(backup: Backup, database = this.records): Promise<void> {
    return this.#whileAway(() => this.#restored(backup, database));
  }

  /** No client sees a server that is half restored: requests that are under way end before, and later ones wait. */
  async #whileAway(work: () => Promise<void>): Promise<void> {
    let back = (): void => undefined;
    this.#isAway = new Promise((resolve) => {
      back = resolve;
    });
    await Promise.allSettled(this.#underWay);
    try {
      await work();
    } finally {
      this.#isAway = undefined;
      back();
    }
  }

  async #restored({ docs, mark }: Backup, database: string): Promise<void> {
    await this.remove(database);
    await this.create(database);
    await this.ask('/_bulk_docs', 'POST', { docs, new_edits: false }, database);
    if (mark === undefined) return;
    const { _id } = mark;
    const content = Object.fromEntries(Object.entries(mark).filter(([field]) => !field.startsWith('_')));
    expect(
      await this.ask(`/_local/${encodeURIComponent(String(_id).slice('_local/'.length))}`, 'PUT', content, database),
    ).toMatchObject({ ok: true });
  }

  /** Documents that requests with this end of their path named, in their order. */
  named(path: '/_revs_diff' | '/_bulk_docs'): string[] {
    return this.sent
      .filter((one) => one.path === path)
      .flatMap(({ body }) =>
        path === '/_revs_diff' ? Object.keys(body) : ((body['docs'] ?? []) as { _id: string }[]).map(({ _id }) => _id),
      )
      .filter((id) => !id.startsWith('afield:'));
  }
}
