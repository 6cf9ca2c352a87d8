import {
  couchdbPublisher,
  createClient,
  readEventDocument,
  readEvents,
  type ActionPart,
  type Client,
  type ClientOptions,
  type ClientStatus,
  type Doc,
  type DocumentEvent,
  type Target,
} from '@afield/client';
import {
  serverUnderTest,
  temporaryDatabases,
  type ServerUnderTest,
  type TemporaryDatabase,
  type TemporaryDatabases,
} from '@afield/devserver';
import { FakeDevice, MemoryPouch, type FakeProcess, type ProcessHooks } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';

type Stored = Readonly<Record<string, unknown>>;

/** The server takes no document of this colour. */
const noBlack = {
  _id: '_design/no-black',
  validate_doc_update: "function (doc) { if (doc.colour === 'black') throw { forbidden: 'no black here' }; }",
};

/**
 * When a process dies: the document is `written`; its outcome is about to be stored (`unsaved`); it is (`persisted`) and the event is about to be
 * sent; the event is `stored` at the server; it was `answered`; that it is published is `marked`.
 */
export type Moment = 'written' | 'unsaved' | 'persisted' | 'stored' | 'answered' | 'marked';

/** A process of the device, with a client. */
export interface OpenedProcess {
  readonly client: Client;
  readonly process: FakeProcess;
}

/**
 * A server behind the fault proxy, with a database of documents and one of events, and a device whose clock goes on only
 * when a test waits for something. What arrives at the database of events is noted.
 */
export class PublicationBed {
  /** Ids of the events in the order in which the database of events was asked to store them, repeats included. */
  readonly arrived: string[] = [];
  /** Events that arrived before the server had the revision that they tell of. */
  readonly early: string[] = [];
  readonly device = new FakeDevice();
  readonly #clients: { readonly client: Client; readonly process: FakeProcess }[] = [];

  private constructor(
    readonly server: ServerUnderTest,
    readonly databases: TemporaryDatabases,
    readonly records: TemporaryDatabase,
    readonly events: TemporaryDatabase,
  ) {
    server.proxy.intercept(async ({ method, path, json }) => {
      if (method !== 'POST' || !path.endsWith(`/${events.name}/_bulk_docs`)) return undefined;
      for (const doc of (json() as { docs: Doc[] }).docs) await this.#note(doc);
      return undefined;
    });
  }

  static start(): Promise<ServerUnderTest> {
    return serverUnderTest();
  }

  /** Fresh databases on a server, and a fresh device. */
  static async on(server: ServerUnderTest): Promise<PublicationBed> {
    const databases = temporaryDatabases(server.directUrl, server.admin);
    const make = async (label: string, docs: readonly object[]): Promise<TemporaryDatabase> => {
      const { name } = await databases.create(label, { docs });
      return { name, url: `${server.url}/${name}` };
    };
    return new PublicationBed(server, databases, await make('records', [noBlack]), await make('events', []));
  }

  /** A client on the device's stores. Both targets are at hand; local documents are pushed and pulled. */
  open(hooks: ProcessHooks = {}, options: Partial<ClientOptions> = {}): OpenedProcess {
    const process = this.device.process(hooks);
    const client = createClient({
      name: 'clinic',
      PouchDB: process.PouchDB,
      actions: [],
      server: this.records.url,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...this.server.admin }) },
      publishers: [couchdbPublisher({ url: this.events.url })],
      jitter: 0,
      ...options,
      environment: { ...process.environment, ...options.environment },
    });
    this.#clients.push({ client, process });
    return { client, process };
  }

  /** A client whose process is killed at one moment of its first mutation. */
  openDying(moment: Moment, target: Target): OpenedProcess & { readonly died: Promise<void> } {
    let noteDeath = (): void => undefined;
    const died = new Promise<void>((resolve) => (noteDeath = resolve));
    /** What runs in it now never returns. */
    const die = <T>(): Promise<T> => {
      opened.process.kill();
      noteDeath();
      return new Promise<T>(() => undefined);
    };
    let isAnswered = false;
    let isWritten = false;
    const request = `/${this.events.name}/_bulk_docs`;
    const isWrite = (path: string): boolean => path === `/${this.records.name}/_bulk_docs`;
    const opened = this.open({
      request: async ({ path }, send) => {
        if (path === request && moment === 'persisted') return die();
        const answer = await send();
        if (path === request) isAnswered = true;
        if (path === request && moment === 'stored') return die();
        if (target === 'server' && isWrite(path)) isWritten = true;
        if (target === 'server' && isWrite(path) && moment === 'written') return die();
        return answer;
      },
      call: async ({ database, kind, ids }, run) => {
        const isMark = isAnswered && kind === 'write' && database === 'clinic-afield-queue';
        if (isMark && moment === 'answered') return die();
        const isOutcome =
          kind === 'write' && database === 'clinic-afield-queue' && ids.some((id) => id.startsWith('b:'));
        if (isWritten && isOutcome && moment === 'unsaved') return die();
        const answer = await run();
        if (isMark && moment === 'marked') return die();
        if (target === 'local' && kind === 'write' && database === 'clinic') isWritten = true;
        if (target === 'local' && kind === 'write' && database === 'clinic' && moment === 'written') return die();
        return answer;
      },
    });
    return { ...opened, died };
  }

  async run(client: Client, target: Target, actions: readonly ActionPart[], key?: string): Promise<string> {
    const { bulkOperationId } = await client.enqueue({ target, actions, ...(key === undefined ? {} : { key }) });
    await firstValueFrom(
      client.bulkOperations$.pipe(
        filter((all) => all.some(({ id, state }) => id === bulkOperationId && state.startsWith('done'))),
      ),
    );
    return bulkOperationId;
  }

  /** Time goes on until it is so. */
  until<Value>(promise: Promise<Value>): Promise<Value> {
    return this.device.until(promise);
  }

  status(client: Client, is: (status: ClientStatus) => boolean): Promise<ClientStatus> {
    return this.until(firstValueFrom(client.status$.pipe(filter(is))));
  }

  /** Nothing is pending, and all events are at the server but for so many. */
  published(client: Client, unpublished = 0): Promise<ClientStatus> {
    return this.status(
      client,
      (status) =>
        status.leader && status.pending === 0 && status.unpublished === unpublished && status.push.state === 'idle',
    );
  }

  /** The event documents that the server has, in the order of the events' numbers. */
  async stored(): Promise<DocumentEvent[]> {
    const { rows } = (await this.#ask(`${this.events.name}/_all_docs?include_docs=true`)) as { rows: { doc: Doc }[] };
    return rows
      .flatMap(({ doc }) => {
        const reading = readEventDocument(doc);
        return reading.kind === 'event' ? [reading.event] : [];
      })
      .sort((a, b) => a.sequence - b.sequence || a.index - b.index);
  }

  /** The events as a reader gets them, a few changes at a time. */
  async read(): Promise<DocumentEvent[]> {
    const { username, password } = this.server.admin;
    const remote = new MemoryPouch(`${this.server.directUrl}/${this.events.name}`, {
      skip_setup: true,
      auth: { username, password },
    });
    const found: DocumentEvent[] = [];
    let since: string | undefined;
    for (let more = true; more;) {
      const read = await readEvents(remote, { since, limit: 3 });
      found.push(...read.events);
      ({ since, more } = read);
    }
    await remote.close();
    return found;
  }

  /** A document at the server; undefined when there is none. */
  async document(id: string): Promise<Stored | undefined> {
    const found = (await this.#ask(`${this.records.name}/${id}`)) as Stored;
    return found['_id'] === id ? found : undefined;
  }

  /** What the database of events has under an id. */
  async eventDocument(id: string): Promise<Stored> {
    return (await this.#ask(`${this.events.name}/${encodeURIComponent(id)}`)) as Stored;
  }

  /** Writes into the database of events, past the proxy and all devices. */
  async write(docs: readonly object[]): Promise<void> {
    await this.#ask(`${this.events.name}/_bulk_docs`, { docs });
  }

  async dispose(): Promise<void> {
    for (const { client, process } of this.#clients) if (process.alive) await this.until(client.close());
    await this.device.dispose();
    await this.server.proxy.reset();
    await this.databases.dispose();
  }

  async #note({ _id, ...event }: Doc): Promise<void> {
    this.arrived.push(_id);
    const { documentId, rev } = event as { documentId?: string; rev?: string | null };
    if (documentId === undefined || typeof rev !== 'string') return;
    const leaves = await this.#ask(`${this.records.name}/${encodeURIComponent(documentId)}?open_revs=all&revs=true`);
    const known = (leaves as { ok: { _revisions: { start: number; ids: string[] } } }[]).flatMap(
      ({ ok: { _revisions: line } }) => line.ids.map((hash, age) => `${String(line.start - age)}-${hash}`),
    );
    if (!known.includes(rev)) this.early.push(_id);
  }

  async #ask(path: string, body?: object): Promise<unknown> {
    const { username, password } = this.server.admin;
    const answer = await fetch(`${this.server.directUrl}/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Basic ${btoa(`${username}:${password}`)}`,
        'content-type': 'application/json',
        accept: 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return answer.json();
  }
}

export const creating = (id: string, doc: object): ActionPart => ({
  action: 'create',
  operations: [{ id, doc }],
});
export const updating = (id: string, patch: object): ActionPart => ({
  action: 'update',
  operations: [{ id, patch }],
});
export const deleting = (id: string): ActionPart => ({ action: 'delete', operations: [{ id }] });
