import type { PouchLike, PouchReplication } from '@afield/client';
import { z } from 'zod';
import type { MemoryDatabase } from './memory-database.js';

const changesPage = z.object({
  results: z.array(z.object({ id: z.string(), changes: z.array(z.object({ rev: z.string() })) })),
  last_seq: z.union([z.string(), z.number()]),
});
const bulkGetPage = z.object({
  results: z.array(z.object({ docs: z.array(z.object({ ok: z.optional(z.record(z.string(), z.unknown())) })) })),
});
const pageSize = 200;
const checkpoint = '_local/pull';

interface Remote {
  readonly name: string;
  readonly fetch: typeof fetch;
}

/**
 * A pull as PouchDB's replicator makes it, once: changes, the bodies of what is not here, the checkpoint. Without
 * attachments.
 */
export function pullInto(source: PouchLike, target: PouchLike): PouchReplication {
  const run = new PullRun(source as unknown as Remote, target);
  const done = run.run();
  return Object.assign(done, {
    on: () => done,
    cancel: () => {
      run.cancelled = true;
    },
  });
}

class PullRun {
  cancelled = false;
  readonly #database: MemoryDatabase;
  #written = 0;

  constructor(
    private readonly remote: Remote,
    private readonly target: PouchLike,
  ) {
    this.#database = (target as PouchLike & { readonly database: MemoryDatabase }).database;
  }

  async run(): Promise<unknown> {
    for (let isMore = true; isMore && !this.cancelled;) {
      const page = changesPage.parse(
        await this.#ask(`/_changes?style=all_docs&since=${encodeURIComponent(this.#since)}&limit=${String(pageSize)}`),
      );
      await this.#bring(page.results.flatMap(({ id, changes }) => changes.map(({ rev }) => ({ id, rev }))));
      if (this.cancelled) break; // what was not written comes again
      this.#since = String(page.last_seq);
      isMore = page.results.length === pageSize;
    }
    return { ok: !this.cancelled, docs_written: this.#written };
  }

  async #bring(wanted: readonly { id: string; rev: string }[]): Promise<void> {
    if (wanted.length === 0) return;
    const { results } = await this.target.bulkGet({ docs: wanted });
    const isHere = results.map((result) => bulkGetPage.shape.results.element.parse(result).docs[0]?.ok !== undefined);
    const missing = wanted.filter((_one, place) => isHere[place] !== true);
    if (missing.length === 0) return;
    const body = JSON.stringify({ docs: missing });
    const answer = bulkGetPage.parse(await this.#ask('/_bulk_get?revs=true&latest=true', { method: 'POST', body }));
    const docs = answer.results.flatMap((result) =>
      result.docs.flatMap(({ ok }): object[] => (ok === undefined ? [] : [ok])),
    );
    if (this.cancelled) return;
    await this.target.bulkDocs(docs, { new_edits: false });
    this.#written += docs.length;
  }

  async #ask(path: string, init?: RequestInit): Promise<unknown> {
    const answer = await this.remote.fetch(this.remote.name + path, init);
    return answer.json();
  }

  /** Kept with the database, not with its handle: a restart goes on where the last pull ended. */
  get #since(): string {
    return String(this.#database.local(checkpoint)?.[this.remote.name] ?? '0');
  }

  set #since(since: string) {
    this.#database.putLocal(checkpoint, { ...this.#database.local(checkpoint), [this.remote.name]: since });
  }
}
