import { filter, firstValueFrom } from 'rxjs';
import { createAction } from '../actions/create.js';
import { defineDocumentAction } from '../actions/define.js';
import type { Client, ClientOptions, OperationInput } from '../model/client.js';
import type { Doc } from '../model/json.js';
import type { PouchLike } from '../model/pouch.js';
import { z } from 'zod/mini';
import { TestBed } from '../test-bed.fixture.js';
import { inOrder, type Leaf } from './tree.js';

/** Sets the fields of `to`; with `from` only where these fields are so. */
export const setFields = defineDocumentAction({
  name: 'set',
  operation: z.strictObject({
    to: z.record(z.string(), z.unknown()),
    from: z.optional(z.record(z.string(), z.unknown())),
  }),
  isApplied: (doc, { to }) => Object.entries(to).every(([name, value]) => doc[name] === value),
  guard: (doc, { from = {} }) =>
    Object.entries(from).every(([name, value]) => doc[name] === value)
      ? undefined
      : { code: 'guard_mismatch', reason: 'A field is not as it was.' },
  apply: (doc, { to }) => ({ ...doc, ...to }),
});

/** A device with one client. Documents go from device to device only when a test says so. */
export class Device {
  readonly bed = new TestBed();
  client: Client;

  constructor(readonly options: Partial<ClientOptions> = {}) {
    this.client = this.#open();
  }

  get documents(): PouchLike {
    return this.client.documents;
  }

  #open(options: Partial<ClientOptions> = {}): Client {
    return this.bed.open({ actions: [setFields], ...this.options, ...options });
  }

  /** Closes its clients, and opens one anew on the same stores. */
  async reopen(options: Partial<ClientOptions> = {}): Promise<void> {
    await this.close();
    this.bed.clients.splice(0);
    this.client = this.#open(options);
  }

  /** One more client on the same stores, which runs as well. */
  openTab(options: Partial<ClientOptions> = {}): Client {
    return this.#open(options);
  }

  /** Until its clients are at rest and no document has more than one live version. */
  async healed(): Promise<void> {
    await this.bed.until(async () => (await this.live('p1')).length < 2, 1000);
  }

  /** Queues one operation and waits for its end. Answers with its bulk operation. */
  async run(action: string, operation: OperationInput): Promise<string> {
    const { bulkOperationId } = await this.client.enqueue({
      target: 'local',
      actions: [{ action, operations: [operation] }],
    });
    await firstValueFrom(this.client.status$.pipe(filter(({ pending, state }) => pending === 0 && state === 'idle')));
    return bulkOperationId;
  }

  set(id: string, to: Record<string, unknown>, from?: Record<string, unknown>): Promise<string> {
    return this.run('set', { id, to, ...(from === undefined ? {} : { from }) });
  }

  create(id: string, doc: Record<string, unknown>): Promise<string> {
    return this.run(createAction.name, { id, doc });
  }

  remove(id: string): Promise<string> {
    return this.run('delete', { id });
  }

  /** Looks for conflicts, and waits until nothing is left to be healed. */
  async heal(): Promise<void> {
    await firstValueFrom(this.client.status$.pipe(filter(({ leader }) => leader)));
    for (let look = 0; look < 3; look++) {
      this.bed.clock.advance(1000);
      await this.bed.rest();
      await firstValueFrom(this.client.status$.pipe(filter(({ healing }) => healing.state !== 'running')));
    }
  }

  /** Whose revision counts, and the others. */
  async leaves(id: string): Promise<readonly (Leaf & { doc: Doc })[]> {
    const found = (await this.documents.get(id, { open_revs: 'all', revs: true })) as unknown as { ok: Doc }[];
    const leaves = found.map(({ ok }) => {
      const { start, ids } = ok['_revisions'] as { start: number; ids: string[] };
      const ancestors = ids.map((hash, age) => `${String(start - age)}-${hash}`);
      return { rev: ok._rev ?? '', deleted: ok._deleted === true, ancestors, doc: ok };
    });
    return inOrder(leaves) as readonly (Leaf & { doc: Doc })[];
  }

  async live(id: string): Promise<readonly Doc[]> {
    return (await this.leaves(id)).filter(({ deleted }) => !deleted).map(({ doc }) => doc);
  }

  async close(): Promise<void> {
    await Promise.all(this.bed.clients.map((client) => client.close()));
  }
}

/** Brings all revisions of one device to another, as a replication does. */
export async function bring(from: PouchLike, to: PouchLike): Promise<void> {
  const { results } = (await from.changes({ style: 'all_docs', since: 0, return_docs: true })) as {
    results: { id: string; changes: { rev: string }[] }[];
  };
  const docs = results.flatMap(({ id, changes }) => changes.map(({ rev }) => ({ id, rev })));
  // A feed that is read while a document is written may leave it out; and PouchDB never answers who asks for nothing.
  if (docs.length === 0) return;
  const answer = (await from.bulkGet({ docs, revs: true })) as { results: { docs: { ok?: object }[] }[] };
  await to.bulkDocs(
    answer.results.flatMap(({ docs: read }) => read.flatMap(({ ok }) => ok ?? [])),
    { new_edits: false },
  );
}

/** Both devices get what the other one has. */
export async function meet(...devices: readonly Device[]): Promise<void> {
  for (let round = 0; round < 2; round++) {
    for (const one of devices)
      for (const other of devices) if (one !== other) await bring(one.documents, other.documents);
  }
}
