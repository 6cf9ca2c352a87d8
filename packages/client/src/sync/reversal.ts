import type { ServerDatabase } from '../http/server-database.js';
import type { Doc } from '../model/json.js';
import type { RevisionRead } from '../model/pouch.js';
import { generationOf, withoutHistory } from '../model/revision.js';
import type { Failures } from '../queue/failures.js';
import { refusedIn } from '../queue/stored.js';
import type { LocalDatabase } from '../store/local-database.js';
import { lackedOf } from './lacked.js';
import { giveUp, isOwnRevision, isStandIn, standInFor } from '../model/own-revisions.js';

/** What brings one document back to the server's version. */
interface ReversalPlan {
  readonly id: string;
  /** The local version that is given up; undefined: that was done before. */
  readonly local: Doc | undefined;
  /** Revisions to be stored as they are. */
  readonly writes: readonly Doc[];
  /** The revision that counts then; undefined: there is no document any more. */
  readonly to: string | undefined;
}

export interface ReversalParts {
  readonly local: LocalDatabase;
  readonly server: ServerDatabase;
  readonly failures: Failures;
  /**
   * Someone else pushes all that is stored here. A copy of the server's version has to be there first: else the end of the
   * refused branch would be the end of the document.
   */
  readonly sendsFirst: boolean;
}

/**
 * Brings documents back to the server's version (S2). The refused branch gets an end (a deletion), the server's version is
 * made the one that counts: itself, or where it is an ancestor of the refused branch a copy as its child. Both are for this
 * device alone: the push leaves them out. Nothing but the document itself remembers how far this came, so that a call
 * that was cut off is simply made again.
 */
export class Reversal {
  readonly #parts: ReversalParts;

  constructor(parts: ReversalParts) {
    this.#parts = parts;
  }

  /**
   * Brings these documents back. `keep` is called with the local versions before they are given up. Answers which are back.
   * Throws what the store or the server throws; the call may be made again.
   */
  async revert(
    ids: readonly string[],
    keep: (local: ReadonlyMap<string, Doc>) => Promise<void>,
  ): Promise<readonly string[]> {
    const plans = await this.#plan(ids);
    await keep(new Map(plans.flatMap(({ id, local }) => (local === undefined ? [] : [[id, local] as const]))));
    return this.#carry(plans);
  }

  /**
   * What is to be written for these documents. Left out are those with a local revision of which the server has not said
   * yet what it thinks: it may take that, and with it the refused one.
   */
  async #plan(ids: readonly string[]): Promise<readonly ReversalPlan[]> {
    const { local, server, failures } = this.#parts;
    const leaves = await local.leaves(ids);
    const lacked = await lackedOf(
      server,
      leaves.map(({ id, ancestors }) => ({ id, revs: ancestors })),
    );
    const trees = groupById(leaves.map((read, place) => ({ ...read, lacked: lacked[place] ?? [] })));
    const versions = await this.#serverVersions(ids);
    return ids.flatMap((id) => {
      const version = versions.get(id);
      if (version === 'unknown') return [];
      const refused = failures.refusedOf(id).flatMap(refusedIn);
      return planOf(id, trees.get(id) ?? [], new Set(refused), version) ?? [];
    });
  }

  /** Does it. Answers which documents are back: others were changed again meanwhile, or the server did not let it. */
  async #carry(plans: readonly ReversalPlan[]): Promise<readonly string[]> {
    const { local, sendsFirst } = this.#parts;
    const ready = sendsFirst ? await this.#sent(plans) : plans;
    await local.writeRevisions(ready.flatMap(({ writes }) => writes));
    const rows = await local.read(ready.map(({ id }) => id));
    return ready.flatMap(({ id, to, local: before }, place) => {
      const row = rows[place];
      const present = row === undefined || row.deleted ? undefined : row.rev;
      return present === to || before === undefined ? [id] : [];
    });
  }

  /** The server's present versions with their histories and attachments; undefined where there is none. */
  async #serverVersions(ids: readonly string[]): Promise<ReadonlyMap<string, RevisionRead | 'unknown' | undefined>> {
    const { server } = this.#parts;
    const present = (await server.read(ids)).flatMap(({ id, rev, deleted }) =>
      rev === undefined || deleted ? [] : [{ id, rev }],
    );
    const reads = new Map((await server.readRevisions(present)).map((read) => [read.id, read]));
    const found = new Map<string, RevisionRead | 'unknown' | undefined>();
    for (const { id, rev } of present) {
      const read = reads.get(id);
      found.set(id, read?.ancestors[0] === rev ? await this.#withAttachments(read) : 'unknown');
    }
    return found;
  }

  async #withAttachments(read: RevisionRead): Promise<RevisionRead> {
    const { _attachments: stubs } = read.doc as { _attachments?: Record<string, object> };
    if (stubs === undefined || Object.keys(stubs).length === 0) return read;
    const data = await this.#parts.server.attachments(read.id, read.doc._rev ?? '');
    const whole = Object.entries(stubs).map(([name, stub]) => {
      const { content_type } = stub as { content_type?: unknown };
      return [name, { content_type, data: data.get(name) }] as const;
    });
    return { ...read, doc: { ...read.doc, _attachments: Object.fromEntries(whole) } };
  }

  /** Those whose copy of the server's version is at the server too. */
  async #sent(plans: readonly ReversalPlan[]): Promise<readonly ReversalPlan[]> {
    const { server } = this.#parts;
    const copies = plans.flatMap(({ writes }) => writes.filter(({ _rev }) => isStandIn(_rev ?? '')));
    if (copies.length === 0) return plans;
    const { error } = await server.writeRevisions(copies);
    if (error !== undefined) throw error as Error;
    const missing = await server.missing(new Map(copies.map(({ _id, _rev }) => [_id, [_rev ?? '']])));
    return plans.filter(({ id }) => !missing.has(id));
  }
}

/** A leaf, and which of its history the server lacks. */
type Leaf = RevisionRead & { readonly lacked: readonly string[] };

function planOf(
  id: string,
  leaves: readonly Leaf[],
  refused: ReadonlySet<string>,
  version: RevisionRead | undefined,
): ReversalPlan | undefined {
  const isLive = ({ doc }: Leaf): boolean => doc._deleted !== true;
  const absent = leaves.filter(({ lacked }) => lacked.length > 0);
  const isRefused = ({ doc }: Leaf): boolean => refused.has(doc._rev ?? '');
  // Beside what lives, or was refused, a deletion ends what nobody sees: whatever the server thinks of it, nothing follows.
  const isEnd = (leaf: Leaf): boolean =>
    !isLive(leaf) && !isRefused(leaf) && leaves.some((other) => other !== leaf && (isLive(other) || isRefused(other)));
  const given = absent.filter((leaf) => !isOwnRevision(leaf.doc._rev ?? '') && !isEnd(leaf));
  if (!given.every(isRefused)) return undefined;
  const [first] = [...given].sort((a, b) => generationOf(b.doc._rev) - generationOf(a.doc._rev));
  if (first === undefined) {
    // Done before, if what was refused is on branches that have an end; else the server has taken it.
    const ended = new Set(absent.filter((leaf) => !isLive(leaf)).flatMap(({ lacked }) => lacked));
    return [...refused].some((rev) => ended.has(rev)) ? { id, local: undefined, writes: [], to: undefined } : undefined;
  }
  const rev = version?.doc._rev ?? '';
  const isInside = leaves.some(({ doc, ancestors }) => doc._rev !== rev && ancestors.includes(rev));
  const givenUp = given.map(({ doc }) => doc._rev ?? '');
  const shown = version === undefined ? undefined : isInside ? standInFor(version, givenUp) : version.doc;
  const ends = absent.filter((leaf) => isLive(leaf) && leaf.doc._rev !== shown?._rev).map(giveUp);
  return {
    id,
    local: withoutHistory(first.doc),
    writes: [...(shown === undefined ? [] : [shown]), ...ends],
    to: shown?._rev,
  };
}

function groupById<Read extends RevisionRead>(reads: readonly Read[]): Map<string, Read[]> {
  const grouped = new Map<string, Read[]>();
  for (const read of reads) grouped.set(read.id, [...(grouped.get(read.id) ?? []), read]);
  return grouped;
}
