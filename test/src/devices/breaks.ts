import type { WatchedCall } from '@afield/testing';
import type { Breaking } from './device.js';

/** Mistakes between the clients and their documents. The SDK has no switch for them; the test must notice each. */
export const breaks: Readonly<Record<string, { readonly says: string; readonly breaking: () => Breaking }>> = {
  'no-heal': {
    says: 'conflicts are hidden from the clients, so that nothing is healed',
    breaking: () => hidesConflicts,
  },
  'lost-write': { says: 'every 7th document is not written, and the answer says that it was', breaking: losesWrites },
  'kept-leaf': { says: 'losing leaves are not removed, and the answer says that they were', breaking: keepsLeaves },
  'false-missing': { says: 'every 6th read says of a document that it is not there', breaking: missesDocuments },
  'wrong-value': { says: 'every 7th document is written with the note of someone else', breaking: writesOthers },
};

export const unbroken: Breaking = (_call, run) => run();

type Run<T> = (docs?: readonly object[]) => Promise<T>;
type Stored = Readonly<Record<string, unknown>>;

/** Who asks for all leaves of a document gets the one that counts. */
async function hidesConflicts<T>(call: WatchedCall, run: Run<T>): Promise<T> {
  const answer = await run();
  return (leavesIn(call, answer)?.slice(0, 1) ?? answer) as T;
}

interface LeafRow {
  readonly ok: { readonly _rev: string; readonly _deleted?: boolean };
}

/** All leaves of a document, the one that counts first; undefined where something else was asked for. */
function leavesIn({ method }: WatchedCall, answer: unknown): LeafRow[] | undefined {
  if (method !== 'get' || !Array.isArray(answer)) return undefined;
  return (answer as LeafRow[]).sort(
    ({ ok: a }, { ok: b }) =>
      Number(a._deleted === true) - Number(b._deleted === true) ||
      Number.parseInt(b._rev, 10) - Number.parseInt(a._rev, 10) ||
      (a._rev < b._rev ? 1 : -1),
  );
}

function losesWrites(): Breaking {
  let written = 0;
  return leaving((doc) => doc['_deleted'] !== true && (written += 1) % 7 === 0);
}

/** Deletions of leaves that an earlier answer has named as losing ones. */
function keepsLeaves(): Breaking {
  const losing = new Set<string>();
  const keep = leaving((doc) => doc['_deleted'] === true && losing.has(String(doc['_rev'])));
  return async <T>(call: WatchedCall, run: Run<T>) => {
    const answer = await keep(call, run);
    for (const { ok } of leavesIn(call, answer)?.slice(1) ?? []) losing.add(ok._rev);
    return answer;
  };
}

function missesDocuments(): Breaking {
  let read = 0;
  return async <T>({ method }: WatchedCall, run: Run<T>) => {
    const answer = (await run()) as unknown;
    if (method !== 'allDocs') return answer as T;
    const { rows } = answer as { rows: { key: string; value?: { deleted?: boolean } }[] };
    const all = rows.map((row) =>
      row.value !== undefined && row.value.deleted !== true && (read += 1) % 6 === 0
        ? { key: row.key, error: 'not_found' }
        : row,
    );
    return { ...(answer as object), rows: all } as T;
  };
}

function writesOthers(): Breaking {
  let written = 0;
  return <T>({ docs }: WatchedCall, run: Run<T>) =>
    docs.length === 0
      ? run()
      : run(docs.map((doc) => ((written += 1) % 7 === 0 ? { ...doc, note: 'not asked for' } : doc)));
}

/** Some documents of a bulk write are left out, and their rows say that they were written. */
function leaving(isLeft: (doc: Stored) => boolean): Breaking {
  return async <T>({ method, docs }: WatchedCall, run: Run<T>) => {
    if (method !== 'bulkDocs' || docs.length === 0) return run();
    const left = new Set(docs.filter((doc) => isLeft(doc as Stored)));
    const rows = (await run(docs.filter((doc) => !left.has(doc)))) as unknown as readonly unknown[];
    const said = [...left].map((doc) => {
      const { _id: id, _rev: rev = '0-0' } = doc as { _id: string; _rev?: string };
      return { ok: true, id, rev: `${String(Number.parseInt(rev, 10) + 1)}-${'f'.repeat(32)}` };
    });
    return [...rows, ...said] as T;
  };
}
