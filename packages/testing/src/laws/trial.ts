import {
  createAction,
  createClient,
  deleteAction,
  updateAction,
  type AnyAction,
  type AuthOptions,
  type BulkOperationStatus,
  type Client,
  type Doc,
  type FailedOperation,
  type HandlerResult,
  type OperationInput,
} from '@afield/client';
import { isObject, type JsonObject } from '../cases/json.js';
import { FakeDevice } from '../fake-device.js';
import { InvalidSampleError, type BatchSample } from './sample.js';

/** What an action finds beside the documents of the device. */
export interface ActionWorld {
  /** The address and the sign-in for `createClient`; documents are not replicated. */
  readonly server?: string;
  readonly auth?: AuthOptions;
  /** Default: no network. */
  readonly fetch?: typeof fetch;
  /** What the action changes there, as JSON; it is compared like the documents. */
  readonly read?: () => unknown;
}

/** What one run of a batch brought. */
export interface Run {
  /** In the state `failed`: what the handler threw. */
  readonly bug: string | undefined;
  /** Codes of the failures, by the operation's place in the sample. */
  readonly failed: ReadonlyMap<number, string>;
  /** The documents after it, by id. */
  readonly docs: ReadonlyMap<string, Snapshot>;
  readonly world: unknown;
}

/** A document without what another history would change. */
export interface Snapshot {
  readonly rev: string;
  /** Fields, and digests of attachments; undefined when it is deleted. */
  readonly body: JsonObject | undefined;
}

/** Put into every document of a sample: no action can know of it. */
export const unknownField = 'afield_law_unknown';
export const unknownValue = { kept: ['as', { it: 'is' }], constructor: 'plain', none: null };
export const attachmentName = 'afield-law.txt';

/** What the client knows by itself, and does not take a second time. */
const builtIn: readonly AnyAction[] = [createAction, updateAction, deleteAction];
const databaseName = 'records';
const lostAnswer = { name: 'UnknownError', domException: true };
const endStates = new Set(['done', 'done-with-failures', 'failed', 'cancelled']);

/** One device with the documents of a sample, and a real client that runs the sample's operations. */
export class Trial {
  readonly #device: FakeDevice;
  readonly #client: Client;
  readonly #world: ActionWorld;
  /** Called when a handler has done its work, before its outcome is stored. */
  #afterHandler: ((result: HandlerResult) => Promise<void>) | undefined;

  constructor(
    private readonly action: AnyAction,
    private readonly sample: BatchSample,
    world: ActionWorld,
  ) {
    this.#world = world;
    this.#device = new FakeDevice({ fetch: world.fetch ?? noNetwork });
    const { PouchDB, environment } = this.#device.process();
    this.#client = createClient({
      name: databaseName,
      PouchDB,
      environment,
      actions: builtIn.includes(action) ? [] : [this.#watched(action)],
      jitter: 0,
      replication: false,
      ...(world.server === undefined ? {} : { server: world.server }),
      ...(world.auth === undefined ? {} : { auth: world.auth }),
    });
  }

  /** Stores the documents of the sample, each with a field and an attachment that the action does not know. */
  async seed(): Promise<ReadonlyMap<string, Snapshot>> {
    const refuse = (why: unknown): never => {
      throw new InvalidSampleError(`A document cannot be stored: ${String(why)}`, this.sample);
    };
    const rows = await this.#device.database(databaseName).bulkDocs(this.sample.docs.map(decorated)).catch(refuse);
    const refused = rows.find((row) => isObject(row) && row['error'] !== undefined);
    if (refused !== undefined) refuse(JSON.stringify(refused));
    return this.#docs();
  }

  /** From now on the answer to the first write, of documents or over the network, gets lost. */
  loseAnswers(): void {
    this.#device.store.add({
      when: { call: 'bulkDocs', database: databaseName, nth: 1 },
      do: { type: 'reject', error: lostAnswer, commit: true },
    });
    this.#device.network.add({
      when: { method: ['POST', 'PUT', 'DELETE', 'PATCH'], nth: 1 },
      do: { type: 'network-error', commit: true },
    });
  }

  /** Queues the operations and waits for their end. */
  async run(order: 'as-given' | 'opposite' = 'as-given'): Promise<Run> {
    const places = this.sample.operations.map((_operation, place) => place);
    if (order === 'opposite') places.reverse();
    const operations = places.map((place) => this.sample.operations[place]).filter((one) => one !== undefined);
    return this.#device.until(
      (async () => {
        const { bulkOperationId: id } = await this.#client.enqueue({
          target: 'local',
          actions: [{ action: this.action.name, operations: operations.map(withoutKey) }],
        });
        const list = await when(this.#client.bulkOperations$, (all: readonly BulkOperationStatus[]) =>
          all.some((one) => one.id === id && endStates.has(one.state)),
        );
        const status = list.find((one) => one.id === id);
        if (status === undefined) throw new Error('the client forgot a bulk operation');
        const failures = await when(this.#client.failures$, () => true);
        return { bug: status.bug?.stack, failed: failedOf(failures, id, places), ...(await this.#state()) };
      })(),
    );
  }

  /**
   * The same batch twice. Documents: queued anew. A batch action may know by its keys what it has done: its outcome gets
   * lost, and the same operations run again. Answers with what each of them left.
   */
  async runTwice(): Promise<readonly [Run, Run]> {
    if (this.action.kind === 'document') return [await this.run(), await this.run()];
    let once: Run | undefined;
    const codes = new Map<number, string>();
    this.#afterHandler = async ({ failed = [], again }) => {
      for (const { index, code } of failed) codes.set(index, code);
      // Only a part of the batch has come to its end; its outcome is kept.
      if (again !== undefined) return;
      this.#afterHandler = undefined;
      once = { bug: undefined, failed: codes, ...(await this.#state()) };
      this.#device.store.add({
        when: { call: 'bulkDocs', database: '-afield-queue', nth: 1 },
        do: { type: 'reject', error: lostAnswer },
      });
    };
    const twice = await this.run();
    return [once === undefined ? twice : withIdFailures(once, twice), twice];
  }

  dispose(): Promise<void> {
    return this.#device.dispose();
  }

  #watched(action: AnyAction): AnyAction {
    if (action.kind === 'document') return action;
    return {
      ...action,
      run: async (batch, context) => {
        const result = await action.run(batch, context);
        await this.#afterHandler?.(result);
        return result;
      },
    };
  }

  async #state(): Promise<Pick<Run, 'docs' | 'world'>> {
    const world: unknown = await this.#device.inFlight.track(async () => this.#world.read?.());
    return { docs: await this.#docs(), world };
  }

  async #docs(): Promise<ReadonlyMap<string, Snapshot>> {
    const database = this.#device.database(databaseName);
    const named = [...this.sample.docs.map(({ _id }) => _id), ...this.sample.operations.map(({ id }) => id)];
    const { rows: all } = await database.allDocs({ include_docs: true });
    const keys = new Set([...named.filter(isId), ...all.map((row) => String((row as JsonObject)['id']))]);
    const { rows } = await database.allDocs({ keys: [...keys], include_docs: true });
    return new Map(
      rows.flatMap((row) => {
        const { key, value, doc } = row as { key: string; value?: { rev: string } | null; doc?: Doc | null };
        if (value === undefined || value === null) return [];
        return [[key, { rev: value.rev, body: doc === undefined || doc === null ? undefined : bodyOf(doc) }] as const];
      }),
    );
  }
}

function decorated(doc: Doc): object {
  if (doc._deleted === true) return doc;
  const given = isObject(doc['_attachments']) ? doc['_attachments'] : {};
  const attachment = { content_type: 'text/plain', data: Buffer.from('kept as it is').toString('base64') };
  return { ...doc, [unknownField]: unknownValue, _attachments: { ...given, [attachmentName]: attachment } };
}

/** The key of a sample would make its second run a duplicate of the first. */
function withoutKey(operation: OperationInput): OperationInput {
  return without(operation, ['key']);
}

function bodyOf(doc: Doc): JsonObject {
  const attachments = doc['_attachments'];
  const digests = Object.entries(isObject(attachments) ? attachments : {}).map(([name, value]) => {
    const { digest, content_type: type } = value as { digest?: unknown; content_type?: unknown };
    return [name, { digest, type }];
  });
  return { ...without(doc, ['_rev']), _attachments: Object.fromEntries(digests) as JsonObject };
}

/** Operations without a usable id never reach a handler: they failed before it ran. */
function withIdFailures(once: Run, twice: Run): Run {
  const failed = new Map(once.failed);
  for (const [place, code] of twice.failed) if (code === 'no_id' || code === 'invalid_id') failed.set(place, code);
  return { ...once, failed };
}

function without(fields: object, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

function failedOf(
  failures: readonly FailedOperation[],
  id: string,
  places: readonly number[],
): ReadonlyMap<number, string> {
  return new Map(
    failures.flatMap(({ bulkOperationId, index, code }) => {
      const place = bulkOperationId === id && index !== undefined ? places[index] : undefined;
      return place === undefined ? [] : [[place, code] as const];
    }),
  );
}

function isId(id: unknown): id is string {
  return typeof id === 'string' && id !== '' && !id.startsWith('_');
}

function noNetwork(): Promise<Response> {
  return Promise.reject(new TypeError('Failed to fetch'));
}

interface Source<T> {
  subscribe(listener: (value: T) => void): { unsubscribe(): void };
}

/** The first value that is as wanted. */
function when<T>(source: Source<T>, isWanted: (value: T) => boolean): Promise<T> {
  return new Promise((resolve) => {
    let isDone = false;
    const subscription = source.subscribe((value) => {
      if (isDone || !isWanted(value)) return;
      isDone = true;
      queueMicrotask(() => {
        subscription.unsubscribe();
      });
      resolve(value);
    });
  });
}
