import { deleteAction, type Doc } from '@afield/client';
import type { Leaf, Place, Tree } from './places.js';

/** All that is known of one document after a run: from every device and the server. */
export interface Known {
  readonly id: string;
  /** All began with it. */
  readonly wasThere: boolean;
  readonly trees: ReadonlyMap<string, Tree>;
  /** As the server has it: the first leaf. Undefined: there never was such a document. */
  readonly winner: Leaf | undefined;
  /** Revisions that any place still has. */
  readonly bodies: ReadonlyMap<string, Doc>;
  /** The bodies of the winner and of what came before it, oldest first. */
  readonly history: readonly Doc[];
}

export async function knownOf(id: string, wasThere: boolean, places: readonly Place[], server: string): Promise<Known> {
  const trees = new Map<string, Tree>();
  for (const place of places) trees.set(place.name, await place.read(id));
  const bodies = new Map([...trees.values()].flatMap((tree) => [...tree.bodies]));
  const winner = trees.get(server)?.leaves[0];
  const history = [...(winner?.history ?? [])].reverse().flatMap((rev) => bodies.get(rev) ?? []);
  return { id, wasThere, trees, winner, bodies, history };
}

/** The revision and all before it, newest first, as any place knows it. */
export function ancestorsOf({ trees }: Known, rev: string | null): readonly string[] {
  for (const { leaves } of trees.values()) {
    for (const { history } of leaves) {
      const at = rev === null ? -1 : history.indexOf(rev);
      if (at >= 0) return history.slice(at);
    }
  }
  return [];
}

export function liveBodies({ bodies }: Known): readonly Doc[] {
  return [...bodies.values()].filter(({ _deleted }) => _deleted !== true);
}

export const isDeletion = (action: string): boolean => action === deleteAction.name;

/** The history of the winner after its last deletion; nothing where it is deleted. */
export function sinceDeletion({ history }: Known): readonly Doc[] {
  const last = history.map((doc) => doc._deleted === true).lastIndexOf(true);
  return history.slice(last + 1);
}
