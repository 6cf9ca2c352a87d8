import { z } from 'zod/mini';
import type { RequestScope } from '../http/requests.js';
import type { ServerDatabase } from '../http/server-database.js';
import type { LocalChange, LocalDatabase } from '../store/local-database.js';

/** What was written to the server last, to be found there again. */
const mark = z.object({
  /** A name of its own; null where the server does not let us write one. */
  id: z.nullable(z.string()),
  since: z.number(),
  late: z.number(),
});

/** What the push remembers. */
const pushData = z.object({
  /** Local changes up to here were taken care of: delivered, refused, or kept in `behind`. */
  since: z.union([z.number(), z.string()]),
  /** Documents that could not be delivered yet; the others go on. */
  behind: z.array(z.object({ id: z.string(), revs: z.array(z.string()) })),
  /** How often something was delivered that `since` had passed before. */
  late: z.optional(z.number()),
  /** The name of the local database that `since` counts in; another one begins at 0. */
  source: z.optional(z.string()),
  mark: z.optional(mark),
});
export type PushData = z.infer<typeof pushData>;

/** Reads what the push remembers; undefined when it is of another shape. */
export function parsePushData(json: unknown): PushData | undefined {
  const parsed = pushData.safeParse(json);
  return parsed.success ? parsed.data : undefined;
}

/** Our document in the server's database. `since` is what the server has at least. */
const storedMark = z.object({
  v: z.literal(1),
  mark: z.string(),
  source: z.string(),
  since: z.number(),
  late: z.number(),
});

/** The name says nothing of code: a new build of an app finds the mark of the old one. */
const markName = (storeId: string): string => `afield-push-v1-${storeId}`;

/** Revisions in one question whether the server has them still. */
const perQuestion = 1000;
/** So many of the newest are asked for where no mark can be written. */
const newest = 100;

interface CheckpointParts {
  readonly local: LocalDatabase;
  readonly server: ServerDatabase;
  readonly storeId: () => string;
  readonly newId: () => string;
  /** Whether the server has refused this revision, as far as is known: it is not missed then. */
  readonly isRefused: (id: string, rev: string) => Promise<boolean>;
}

/**
 * Looks whether the server is the one that it was: not made anew, not restored from a backup that lies behind the push.
 *
 *   our mark is there ──▶ what came after it is there still ──▶ a new mark
 *          │ no                      │ no
 *          ▼                         ▼
 *   back to what the mark that is there says, else to 0: the push asks and sends again
 *
 * A mark is written after what it stands for was delivered and asked for once more. So a server that has it, and nothing
 * less, has all that.
 */
export class Checkpoint {
  readonly #parts: CheckpointParts;
  readonly #local: LocalDatabase;
  readonly #server: ServerDatabase;
  readonly #storeId: () => string;
  readonly #newId: () => string;
  readonly #isRefused: (id: string, rev: string) => Promise<boolean>;

  constructor(parts: CheckpointParts) {
    this.#parts = parts;
    this.#local = parts.local;
    this.#server = parts.server;
    this.#storeId = parts.storeId;
    this.#newId = parts.newId;
    this.#isRefused = parts.isRefused;
  }

  /** What the push has to go on with; the same object when nothing has changed. One request when nothing is new. */
  look(given: PushData, scope: RequestScope): Promise<PushData> {
    return new Checkpoint({ ...this.#parts, server: this.#parts.server.within(scope) }).#look(given);
  }

  async #look(given: PushData): Promise<PushData> {
    const source = await this.#local.id();
    // Another local database counts anew: what is in it was never pushed from here.
    const data = given.source === source ? given : { ...begun(given.source === undefined ? given : nothing), source };
    const name = markName(this.#storeId());
    const found = await this.#server.readLocal(name);
    const parsed = storedMark.safeParse(found);
    const there = parsed.success && parsed.data.source === source ? parsed.data : undefined;
    const looked = await this.#judged(data, there);
    const { mark: known } = looked;
    const since = Number(looked.since);
    const late = looked.late ?? 0;
    if (known?.since === since && known.late === late) return looked;
    const id = this.#newId();
    const written = { v: 1, mark: id, source, since, late };
    const isStored = await this.#server.writeLocal(name, { ...written, ...revOf(found) });
    return { ...looked, mark: { id: isStored ? id : null, since, late } };
  }

  async #judged(data: PushData, there: z.infer<typeof storedMark> | undefined): Promise<PushData> {
    const { mark: known, late = 0 } = data;
    const since = Number(data.since);
    if (since === 0) return data;
    if (known?.id === null && there === undefined) {
      const lacked = await this.#lacked(await this.#local.newestUpTo(since, newest), data);
      return lacked.length === 0 ? data : begun(data);
    }
    if (known === undefined || there?.mark !== known.id) {
      // What was delivered late lies before `since`, and is asked for only from the beginning.
      const isCommon = there?.late === late && there.since <= since;
      return { ...begun(data), since: isCommon ? there.since : 0 };
    }
    return this.#sinceMark(data, known.since);
  }

  /** What was delivered after the mark was written may be gone, and the mark be there. */
  async #sinceMark(data: PushData, from: number): Promise<PushData> {
    const lacked: LocalChange[] = [];
    for (let at = from, upTo = Number(data.since); at < upTo;) {
      const page = await this.#local.changesBetween(at, upTo, perQuestion);
      lacked.push(...(await this.#lacked(page.changes, data)));
      at = page.last;
    }
    if (lacked.length === 0) return data;
    if (lacked.length > newest) return { ...begun(data), since: from };
    const ids = new Set(lacked.map(({ id }) => id));
    const behind = lacked.map(({ id, revs }) => ({ id, revs: [...revs] }));
    return { ...data, behind: [...data.behind.filter(({ id }) => !ids.has(id)), ...behind] };
  }

  /** Which of these the server does not have, though it had them. */
  async #lacked(changes: readonly LocalChange[], { behind }: PushData): Promise<readonly LocalChange[]> {
    const waiting = new Set(behind.map(({ id }) => id));
    const asked = changes.filter(({ id }) => !waiting.has(id) && !id.startsWith('_design/'));
    if (asked.length === 0) return [];
    const missing = await this.#server.missing(new Map(asked.map(({ id, revs }) => [id, revs])));
    const lacked: LocalChange[] = [];
    for (const [id, revs] of missing) {
      const missed: string[] = [];
      for (const rev of revs) if (!(await this.#isRefused(id, rev))) missed.push(rev);
      if (missed.length > 0) lacked.push({ id, revs: missed });
    }
    return lacked;
  }
}

const nothing: PushData = { since: 0, behind: [] };

/** From the beginning: what waits goes on waiting, and there is no mark. */
function begun({ behind, late, source }: PushData): PushData {
  return { since: 0, behind, late, source };
}

function revOf(found: Record<string, unknown> | undefined): { _rev?: string } {
  const rev = found?.['_rev'];
  return typeof rev === 'string' ? { _rev: rev } : {};
}
