import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Doc } from './json.js';
import type { RevisionRead } from './pouch.js';
import { childOf } from './revision.js';

/*
 * Revisions that are made to undo what the server has refused. They say by their names what they are, so that the push
 * leaves them alone whatever else is lost, and are made of what they stand for: written twice, they are one revision.
 * Names begin with zeros: of two revisions of one generation the other one counts.
 */
const standInName = '00000000af1e1d01';
const giveUpName = '00000000af1e1d02';

/** A copy of the server's version, as its child: where the server's own cannot be a leaf any more. */
export function standInFor(server: RevisionRead, givenUp: readonly string[]): Doc {
  const name = `${standInName}${hashOf([server.id, server.doc._rev ?? '', ...[...givenUp].sort()])}`;
  return childOf(server.ancestors, name, server.doc);
}

/** The end of a branch that the server is not to have. */
export function giveUp(leaf: RevisionRead): Doc {
  const name = `${giveUpName}${hashOf([leaf.id, leaf.doc._rev ?? ''])}`;
  return childOf(leaf.ancestors, name, { _id: leaf.id, _deleted: true });
}

export function isStandIn(rev: string): boolean {
  return rev.includes(`-${standInName}`);
}

/** Whether it ends a branch that the server is not to have. */
export function isGiveUp(rev: string): boolean {
  return rev.includes(`-${giveUpName}`);
}

export function isOwnRevision(rev: string): boolean {
  return isStandIn(rev) || isGiveUp(rev);
}

function hashOf(parts: readonly string[]): string {
  return bytesToHex(sha256(utf8ToBytes(JSON.stringify(parts)))).slice(0, 16);
}
