import type { PouchConstructor, PouchLike } from '@afield/client';
import { MemoryStore } from '@afield/testing';
import type { Breaking } from './mortal-process.js';

type Stored = Record<string, unknown> & { readonly _id: string };
type Calls = Pick<PouchLike, 'bulkDocs' | 'allDocs'>;

/** A mistake that the harness must notice. */
export interface Mistake {
  readonly says: string;
  readonly breaking: Breaking;
  /** Where it is noticed, and what is violated there. */
  readonly scenario: string;
  readonly violates: readonly string[];
}

/**
 * None is a switch in the SDK: each stands between a client and the store that it is handed, and does there what the SDK
 * would do if it had the mistake.
 */
export const breaks: Readonly<Record<string, Mistake>> = {
  'cursor-first': {
    says: 'the header with the new cursor is written before the outcomes',
    breaking: aroundQueue(cursorFirst),
    scenario: 'apply',
    violates: ['cursor-never-passes', 'no-operation-lost', 'running-again-converges'],
  },
  'no-intent': {
    says: 'no intent is stored before a write',
    breaking: aroundQueue(withoutIntent),
    scenario: 'conflict',
    violates: ['intent-before-write', 'running-again-converges'],
  },
  'no-fence': {
    says: 'the header is not read again right before a write: it counts as it was written last',
    breaking: aroundQueue(withoutFence),
    scenario: 'late-leader',
    violates: ['no-single-leader', 'running-again-converges'],
  },
  'publish-first': {
    says: 'outcomes count before they are stored, so that their events are published first',
    breaking: aroundQueue(outcomesLate),
    scenario: 'publish',
    violates: ['durable-before-published'],
  },
};

function cursorFirst(real: PouchLike): Partial<Calls> {
  return {
    bulkDocs: async (docs) => {
      const stored = docs as readonly Stored[];
      const isFirst = ({ _id }: Stored): boolean => _id.startsWith('h:');
      if (!stored.some(isFirst) || stored.every(isFirst)) return real.bulkDocs(docs);
      const rows = new Map<string, unknown>();
      for (const part of [stored.filter(isFirst), stored.filter((doc) => !isFirst(doc))]) {
        for (const [place, row] of (await real.bulkDocs(part)).entries()) rows.set(part[place]?._id ?? '', row);
      }
      return stored.map(({ _id }) => rows.get(_id));
    },
  };
}

/** The write of an intent is answered and not done; what follows is written on what is really there. */
function withoutIntent(real: PouchLike): Partial<Calls> {
  const invented = new Map<string, string | undefined>();
  return {
    bulkDocs: async (docs) => {
      const stored = (docs as readonly Stored[]).map((doc) => {
        if (!invented.has(doc._id)) return doc;
        const really = invented.get(doc._id);
        invented.delete(doc._id);
        return { ...doc, _rev: really };
      });
      const [only, ...more] = stored;
      const isIntent = more.length === 0 && only?._id.startsWith('b:') === true;
      if (only === undefined || !isIntent || !String(only['rows']).includes('"intent"')) return real.bulkDocs(stored);
      invented.set(only._id, typeof only['_rev'] === 'string' ? only['_rev'] : undefined);
      return [{ ok: true, id: only._id, rev: '1-invented' }];
    },
  };
}

/** A header that is read alone is as this client has written it; only a refused write tells it otherwise. */
function withoutFence(real: PouchLike): Partial<Calls> {
  const written = new Map<string, Stored>();
  return {
    bulkDocs: async (docs) => {
      const rows = await real.bulkDocs(docs);
      for (const [place, doc] of (docs as readonly Stored[]).entries()) {
        const { rev } = (rows[place] ?? {}) as { rev?: unknown };
        if (typeof rev === 'string') written.set(doc._id, { ...doc, _rev: rev });
        else written.delete(doc._id);
      }
      return rows;
    },
    allDocs: async (options) => {
      const [key, ...more] = options.keys ?? [];
      const known = key?.startsWith('h:') === true && more.length === 0 ? written.get(key) : undefined;
      if (known === undefined) return real.allDocs(options);
      return { rows: [{ id: known._id, key: known._id, value: { rev: known['_rev'] }, doc: known }] };
    },
  };
}

/**
 * All calls go to a copy in the memory of the process. What it writes is stored before it is answered, but for outcomes:
 * those are stored a turn later, and are lost when the process ends before.
 */
function outcomesLate(real: PouchLike): Partial<Calls> {
  const copy = new (new MemoryStore().constructorFor())(real.name);
  const bring = async (from: PouchLike, to: PouchLike, ids: readonly string[]): Promise<void> => {
    const { rows } = (await from.allDocs({ keys: ids })) as { rows: { id: string; value: { rev: string } }[] };
    const asked = { docs: rows.map(({ id, value: { rev } }) => ({ id, rev })), revs: true };
    const { results } = (await from.bulkGet(asked)) as { results: { docs: { ok: object }[] }[] };
    const docs = results.flatMap((result) => result.docs.map(({ ok }) => ok));
    await to.bulkDocs(docs, { new_edits: false });
  };
  const copied = (async () => {
    const { rows } = (await real.allDocs({})) as { rows: { id: string }[] };
    const ids = rows.map(({ id }) => id);
    if (ids.length > 0) await bring(real, copy, ids);
  })();
  return {
    bulkDocs: async (docs) => {
      await copied;
      const rows = (await copy.bulkDocs(docs)) as { id: string; ok?: boolean }[];
      const ids = rows.flatMap(({ id, ok }) => (ok === true ? [id] : []));
      const has = (prefix: string): boolean => ids.some((id) => id.startsWith(prefix));
      if (ids.length === 0) return rows;
      if (has('b:') && has('h:')) setImmediate(() => void bring(copy, real, ids));
      else await bring(copy, real, ids);
      return rows;
    },
    allDocs: async (options) => {
      await copied;
      return copy.allDocs(options);
    },
  };
}

function aroundQueue(calls: (real: PouchLike) => Partial<Calls>): Breaking {
  return (PouchDB) => {
    function BrokenPouch(name: string, options?: object): PouchLike {
      const real = new PouchDB(name, options);
      if (!name.endsWith('-afield-queue')) return real;
      const broken = calls(real);
      return new Proxy(real, {
        get: (target, property) => {
          const own = (broken as Record<PropertyKey, unknown>)[property];
          const value: unknown = own ?? Reflect.get(target, property, target);
          return typeof value === 'function' && own === undefined ? (value.bind(target) as unknown) : value;
        },
      });
    }
    return Object.assign(BrokenPouch, {
      replicate: PouchDB.replicate,
    }) as unknown as PouchConstructor;
  };
}
