import { createClient, type Client, type ClientOptions, type ClientStatus, type OperationInput } from '@afield/client';
import {
  deviceDocument,
  deviceId,
  failuresDocument,
  resultDocument,
  type DeviceDocument,
  type FailuresDocument,
  type ResultDocument,
} from '@afield/client/results';
import { FakeDevice, MemoryServer, type FakeProcess, type MemoryDatabase, type StoredDocument } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';

export const minute = 60_000;
export const day = 86_400_000;

/** A request to the results database: how many documents it read or wrote. */
export interface SeenRequest {
  readonly path: string;
  readonly bytes: number;
  readonly ids: readonly string[];
}

/** One device, one server with documents and results, and what went to the results. */
export class ResultsBed {
  readonly server = new MemoryServer();
  readonly records: MemoryDatabase = this.server.create('records');
  results: MemoryDatabase = this.server.create('results');
  readonly seen: SeenRequest[] = [];
  readonly clients: Client[] = [];
  readonly warnings: string[] = [];
  /** Answers instead of the server. */
  around: ((path: string, body: string) => Response | undefined) | undefined;
  isDown = false;
  readonly device = new FakeDevice({
    fetch: (input, init) => {
      if (this.isDown) return Promise.reject(new TypeError('the server is down'));
      const path = new URL(input instanceof Request ? input.url : String(input)).pathname;
      const body = typeof init?.body === 'string' ? init.body : '';
      const answer = this.around?.(path, body);
      if (path.startsWith('/results/') && body !== '') this.#note(path, body);
      return answer === undefined ? this.server.fetch(input, init) : Promise.resolve(answer);
    },
  });

  #note(path: string, body: string): void {
    const { docs, keys } = JSON.parse(body) as { docs?: { _id: string }[]; keys?: string[] };
    const ids = docs?.map(({ _id }) => _id) ?? keys ?? [];
    this.seen.push({ path, bytes: new TextEncoder().encode(body).length, ids });
  }

  open(options: Partial<ClientOptions> = {}, process: FakeProcess = this.device.process()): Client {
    const { PouchDB, environment } = process;
    const client = createClient({
      name: 'records',
      PouchDB,
      environment: { ...environment, warn: (line) => this.warnings.push(line) },
      actions: [],
      server: this.server.urlOf('records'),
      results: this.server.urlOf('results'),
      auth: { credentials: () => Promise.resolve({ type: 'basic', username: 'ann', password: 'pass' }) },
      jitter: 0,
      ...options,
    });
    this.clients.push(client);
    return client;
  }

  async dispose(): Promise<void> {
    await this.device.until(Promise.all(this.clients.map((client) => client.close())));
    await this.device.dispose();
  }

  /** Lets time go on until the client shows it. */
  becomes(client: Client, is: (status: ClientStatus) => boolean): Promise<ClientStatus> {
    return this.device.until(firstValueFrom(client.status$.pipe(filter(is))));
  }

  /** Queues updates of documents that are not there: each fails with `missing`. */
  fail(client: Client, operations: readonly OperationInput[]): Promise<string> {
    return this.enqueue(client, 'update', operations);
  }

  create(client: Client, ...ids: string[]): Promise<string> {
    return this.enqueue(
      client,
      'create',
      ids.map((id) => ({ id, doc: {} })),
    );
  }

  async enqueue(client: Client, action: string, operations: readonly OperationInput[]): Promise<string> {
    const receipt = await this.device.until(client.enqueue({ target: 'local', actions: [{ action, operations }] }));
    return receipt.bulkOperationId;
  }

  /** Documents of one kind on the server, in the order of their ids. */
  all(prefix: string): readonly StoredDocument[] {
    const ids = this.results.ids().filter((id) => id.startsWith(prefix));
    return ids.flatMap((id): StoredDocument[] => listOf(this.results.read(id)));
  }

  resultDocs(): readonly ResultDocument[] {
    return this.all('result:').map((doc) => resultDocument.parse(doc));
  }

  failureDocs(): readonly FailuresDocument[] {
    return this.all('failures:').map((doc) => failuresDocument.parse(doc));
  }

  async deviceDoc(client: Client): Promise<DeviceDocument | undefined> {
    const doc = this.results.read(deviceId(await client.storeId));
    return doc === undefined ? undefined : deviceDocument.parse(doc);
  }

  /** The results database is made anew, with what it held then. */
  restore(docs: readonly StoredDocument[]): void {
    this.server.databases.delete('results');
    this.results = this.server.create('results');
    this.results.write(docs, false);
  }

  backup(): readonly StoredDocument[] {
    return this.results.ids().flatMap((id) => listOf(this.results.read(id, undefined, { revs: true })));
  }
}

function listOf(doc: StoredDocument | undefined): StoredDocument[] {
  return doc === undefined ? [] : [doc];
}
