import { z } from 'zod/mini';
import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError } from '../model/errors.js';
import type { LocalDatabase } from '../store/local-database.js';

const stubs = z.record(z.string(), z.object({ digest: z.optional(z.string()), data: z.optional(z.string()) }));
const attached = z.object({ _id: z.string(), _rev: z.string(), _attachments: stubs });
const attachedRows = z.object({ results: z.array(z.object({ docs: z.array(z.unknown()) })) });
const attachedRow = z.object({ ok: attached });

/**
 * Reads all attachments of a revision at once, however many of them are asked for at the same time. Where the document has
 * them here already, by their digests, nothing is fetched.
 */
export class AttachmentReads {
  readonly #server: Pick<ServerDatabase, 'attachments'>;
  readonly #local: Pick<LocalDatabase, 'read' | 'readWhole'>;
  readonly #open = new Map<string, { all: Promise<ReadonlyMap<string, string>>; asked: number }>();
  /** By revision the digests of its attachments, by name: of the documents that were read last. */
  #digests = new Map<string, ReadonlyMap<string, string>>();

  constructor(server: Pick<ServerDatabase, 'attachments'>, local: Pick<LocalDatabase, 'read' | 'readWhole'>) {
    this.#server = server;
    this.#local = local;
  }

  /** Attachments of these revisions will be asked for: an answer to a bulk get, with stubs. */
  expect(answer: unknown): void {
    this.#digests = new Map();
    const parsed = attachedRows.safeParse(answer);
    for (const row of parsed.success ? parsed.data.results.flatMap(({ docs }) => docs) : []) {
      const found = attachedRow.safeParse(row);
      if (found.success) this.#digests.set(keyOf(found.data.ok._id, found.data.ok._rev), digestsOf(found.data.ok));
    }
  }

  async read(id: string, rev: string, name: string): Promise<string> {
    const key = keyOf(id, rev);
    const open = this.#open.get(key) ?? { all: this.#all(id, rev), asked: 0 };
    this.#open.set(key, open);
    open.asked++;
    try {
      const data = (await open.all).get(name);
      if (data === undefined) {
        throw new RetryableError('An attachment is not there now.', { class: 'server', code: 'attachment-missing' });
      }
      return data;
    } finally {
      open.asked--;
      if (open.asked === 0) this.#open.delete(key);
    }
  }

  async #all(id: string, rev: string): Promise<ReadonlyMap<string, string>> {
    const wanted = this.#digests.get(keyOf(id, rev));
    return (wanted && (await this.#here(id, wanted))) ?? this.#server.attachments(id, rev);
  }

  /** All of these, as the version that counts here has them; undefined where it lacks one. */
  async #here(id: string, wanted: ReadonlyMap<string, string>): Promise<ReadonlyMap<string, string> | undefined> {
    const present = attached.safeParse((await this.#local.read([id]))[0]?.doc);
    if (!present.success) return undefined;
    const known = digestsOf(present.data);
    for (const [name, digest] of wanted) if (known.get(name) !== digest) return undefined;
    const [whole] = await this.#local.readWhole([{ id, rev: present.data._rev }]);
    const read = attached.safeParse(whole?.doc);
    if (!read.success) return undefined;
    const data = new Map(
      Object.entries(read.data._attachments).flatMap(([name, one]) =>
        one.data === undefined ? [] : [[name, one.data] as const],
      ),
    );
    return [...wanted.keys()].every((name) => data.has(name)) ? data : undefined;
  }
}

/** Attachments without a digest are in no list: they are fetched. */
function digestsOf({ _attachments }: z.infer<typeof attached>): ReadonlyMap<string, string> {
  return new Map(Object.entries(_attachments).map(([name, { digest }]) => [name, digest ?? `none of ${name}`]));
}

function keyOf(id: string, rev: string): string {
  return JSON.stringify([id, rev]);
}
