import { createHash } from 'node:crypto';

/** A revision of a document. Bodies are JSON text, so that no one who reads can change what is stored. */
export interface Revision {
  readonly rev: string;
  readonly parent: string | undefined;
  readonly deleted: boolean;
  /** Undefined for an ancestor that came by replication, and after `forget`. */
  body: string | undefined;
}

/** All revisions of one document. */
export class RevisionTree {
  readonly #revisions = new Map<string, Revision>();
  readonly #leaves = new Set<string>();

  get(rev: string): Revision | undefined {
    return this.#revisions.get(rev);
  }

  isLeaf(rev: string): boolean {
    return this.#leaves.has(rev);
  }

  /** The leaf that everyone agrees on without talking: live before deleted, then the longer history, then the name. */
  get winner(): Revision | undefined {
    return this.leaves()[0];
  }

  /** The winner first. */
  leaves(): readonly Revision[] {
    return [...this.#leaves].flatMap((rev) => this.#revisions.get(rev) ?? []).sort(compare);
  }

  /** Adds a revision; one that is there already stays as it is. Answers whether anything is new. */
  add(revision: Revision): boolean {
    const known = this.#revisions.get(revision.rev);
    if (known !== undefined) {
      known.body ??= revision.body;
      return false;
    }
    this.#revisions.set(revision.rev, revision);
    this.#leaves.add(revision.rev);
    if (revision.parent !== undefined) this.#leaves.delete(revision.parent);
    return true;
  }

  /** This revision and its ancestors, newest first. */
  path(rev: string): readonly string[] {
    const path: string[] = [];
    for (let at: string | undefined = rev; at !== undefined; at = this.#revisions.get(at)?.parent) path.push(at);
    return path;
  }

  /** The leaves that come after this revision, or it itself. */
  leavesAfter(rev: string): readonly string[] {
    return [...this.#leaves].filter((leaf) => this.path(leaf).includes(rev));
  }

  /** What compaction does: bodies of all but the leaves are gone. */
  forget(): void {
    for (const revision of this.#revisions.values()) {
      if (!this.#leaves.has(revision.rev)) revision.body = undefined;
    }
  }
}

export function generationOf(rev: string): number {
  return Number.parseInt(rev, 10);
}

/** The name of a new revision: the same change on the same revision has the same name everywhere. */
export function nameOf(parent: string | undefined, deleted: boolean, body: string, salt: string): string {
  const hash = createHash('md5')
    .update(JSON.stringify([parent, deleted, body, salt]))
    .digest('hex');
  return `${String(parent === undefined ? 1 : generationOf(parent) + 1)}-${hash}`;
}

function compare(a: Revision, b: Revision): number {
  if (a.deleted !== b.deleted) return a.deleted ? 1 : -1;
  const byLength = generationOf(b.rev) - generationOf(a.rev);
  return byLength !== 0 ? byLength : a.rev < b.rev ? 1 : -1;
}
