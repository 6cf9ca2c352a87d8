import { AfieldError } from '../model/errors.js';
import { wrongInDocIds } from '../model/doc-ids.js';
import type { Queue } from '../queue/queue.js';
import { listDoc, listId, listPrefix, storedVersion, type StoredList } from '../queue/stored.js';
import { hashOf } from '../queue/subjects.js';
import { idsFilter } from './pull-filter.js';
import type { ReplicateHow } from './replicate-once.js';

/** Ids in a group when groups are made; they are made anew when it comes to twice as many, or to a quarter. */
const perGroup = 1000;

interface Group {
  readonly stored: StoredList;
  readonly ids: readonly string[];
  readonly left: readonly string[];
}

/**
 * Pulls the documents of a list, which may be long and may change.
 *
 *   list ─ by hash ─▶ groups of about a thousand ─▶ what is new in the list, from the start, once
 *                                                └▶ what has changed since the group's checkpoint
 *
 * A changes feed is asked with the whole list of a group, so a group is one request of a bounded size. Its checkpoint is named
 * by the group, not by what is in it: who comes into the list is brought alone, and nobody is read anew. What was in the list
 * is stored (`l:`), and so it is known who left it.
 */
export class PullList {
  readonly #queue: Queue;
  readonly #left: (ids: readonly string[]) => Promise<readonly string[]>;

  /**
   * `left` is told of ids that are no longer in the list: again, until it has resolved. It answers with those that it wants
   * to be told of once more.
   */
  constructor(queue: Queue, left: (ids: readonly string[]) => Promise<readonly string[]>) {
    this.#queue = queue;
    this.#left = left;
  }

  async pull(list: readonly string[], replicate: (how: ReplicateHow) => Promise<void>): Promise<void> {
    const wrong = wrongInDocIds(list);
    if (wrong !== undefined) throw new AfieldError('invalid_doc_ids', `The list of \`pull.docIds\` ${wrong}.`);
    const now = new Set(list);
    const known = await this.#read();
    const count = groupCount(now.size, [...known.keys()]);
    const groups = known.get(count) ?? new Map<number, Group>();
    for (const [number, ids] of inGroups(now, count)) {
      const before = groups.get(number);
      const had = new Set(before?.ids);
      const added = before === undefined ? [] : ids.filter((id) => !had.has(id));
      for (let at = 0; at < added.length; at += perGroup) {
        await replicate({ filter: idsFilter('', added.slice(at, at + perGroup)), once: true });
      }
      await replicate({ filter: idsFilter(`list ${String(number)}/${String(count)}`, ids) });
      // Who comes back is brought anew: it may have changed while it was away.
      if (before === undefined || added.length > 0 || before.ids.length > ids.length) {
        await this.#write([listOf(count, number, ids, goneFrom(before, now), before?.stored._rev)]);
      }
    }
    await this.#tellWhoLeft(now, count);
  }

  async #tellWhoLeft(now: ReadonlySet<string>, count: number): Promise<void> {
    const all = [...(await this.#read())].flatMap(([of, groups]) => [...groups].map(([, group]) => ({ of, ...group })));
    const left = new Set(all.flatMap((group) => goneFrom(group, now)));
    const again = new Set(left.size === 0 ? [] : await this.#left([...left]));
    const kept = new Map<number, string[]>();
    for (const id of again) kept.set(hashOf(id) % count, [...(kept.get(hashOf(id) % count) ?? []), id]);
    const changed = all.flatMap(({ of, stored, ids }) => {
      if (of !== count) return [{ ...stored, _deleted: true }];
      const next = listOf(
        count,
        stored.group,
        ids.filter((id) => now.has(id)),
        kept.get(stored.group) ?? [],
        stored._rev,
      );
      return next.ids === stored.ids && next.left === stored.left ? [] : [next];
    });
    const present = new Set(all.flatMap(({ of, stored }) => (of === count ? [stored.group] : [])));
    const fresh = [...kept].filter(([group]) => !present.has(group));
    await this.#write([...changed, ...fresh.map(([group, ids]) => listOf(count, group, [], ids, undefined))]);
  }

  /** What is stored, by the number of groups and the group. */
  async #read(): Promise<ReadonlyMap<number, ReadonlyMap<number, Group>>> {
    const known = new Map<number, Map<number, Group>>();
    for (const stored of await this.#queue.docs.readRange(listPrefix, listDoc)) {
      const groups = known.get(stored.groups) ?? new Map<number, Group>();
      known.set(stored.groups, groups.set(stored.group, { stored, ids: idsOf(stored.ids), left: idsOf(stored.left) }));
    }
    return known;
  }

  /** What another tab has written meanwhile counts: then this is written at the next pull. */
  async #write(docs: readonly StoredList[]): Promise<void> {
    if (docs.length > 0) await this.#queue.docs.write(docs);
  }
}

function listOf(
  groups: number,
  group: number,
  ids: readonly string[],
  left: readonly string[],
  _rev: string | undefined,
): StoredList {
  return {
    _id: listId(groups, group),
    ...(_rev === undefined ? {} : { _rev }),
    v: storedVersion,
    groups,
    group,
    ids: JSON.stringify(ids),
    left: JSON.stringify(left),
  };
}

/** Who was in the group, and is not in the list now. */
function goneFrom(group: Group | undefined, now: ReadonlySet<string>): readonly string[] {
  return [...new Set([...(group?.left ?? []), ...(group?.ids ?? [])])].filter((id) => !now.has(id));
}

function idsOf(text: string): readonly string[] {
  const parsed: unknown = JSON.parse(text);
  return Array.isArray(parsed) ? parsed.filter((id) => typeof id === 'string') : [];
}

/** Ids by their groups, each group in the order of its ids. */
function inGroups(ids: Iterable<string>, count: number): ReadonlyMap<number, readonly string[]> {
  const groups = new Map<number, string[]>();
  for (const id of [...ids].sort()) {
    const number = hashOf(id) % count;
    const group = groups.get(number) ?? [];
    groups.set(number, group);
    group.push(id);
  }
  return groups;
}

/** A power of two. One that is in use stays, as long as its groups are neither far too large nor far too small. */
export function groupCount(ids: number, used: readonly number[]): number {
  const fits = (count: number): boolean => ids / count <= 2 * perGroup && (count === 1 || ids / count >= perGroup / 4);
  const kept = [...used].sort((a, b) => b - a).find(fits);
  if (kept !== undefined) return kept;
  let count = 1;
  while (ids / count > perGroup) count *= 2;
  return count;
}
