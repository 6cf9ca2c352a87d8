import { z } from 'zod';
import { bulkCount, bulkKey, documentsOf, perBulk, wanted, type ShownBulk } from './work.js';

const allDocs = z.array(
  z.object({ id: z.string(), doc: z.looseObject({ _rev: z.string(), parent: z.optional(z.unknown()) }) }),
);

export interface Ends {
  /** Rows of `_all_docs` with documents. */
  readonly device: unknown;
  readonly server: unknown;
  readonly bulks: readonly ShownBulk[];
  /** Keys whose enqueue was confirmed to the page. */
  readonly confirmed: ReadonlySet<string>;
  /** Result documents on the server. */
  readonly results: readonly Record<string, unknown>[];
  /** Documents of the database of events. */
  readonly events: readonly Record<string, unknown>[];
}

/** What is not as it must be after all the kills; empty when all is well. */
export function disagreements({ device, server, bulks, confirmed, results, events }: Ends): string[] {
  const here = byId(device);
  const there = byId(server);
  const wrong: string[] = [];
  for (let bulk = 0; bulk < bulkCount; bulk += 1) {
    const key = bulkKey(bulk);
    for (const id of documentsOf(bulk)) {
      const own = events.filter(({ documentId }) => documentId === id);
      const isTrue = own[0]?.['changed'] === true && own[0]['rev'] === there.get(id)?._rev;
      if (own.length !== 1 || !isTrue) wrong.push(`${id} has ${String(own.length)} events, or another one`);
      const [local, remote] = [here.get(id), there.get(id)];
      if (local === undefined || local._rev !== remote?._rev) wrong.push(`${id} differs between device and server`);
      if (JSON.stringify(remote?.parent) !== JSON.stringify(wanted)) wrong.push(`${id} was not moved`);
      // The first revision, and one for its one operation.
      if (remote?._rev.startsWith('2-') !== true)
        wrong.push(`${id} was written more than once (${remote?._rev ?? ''})`);
    }
    const own = bulks.filter((one) => one.key === key);
    if (own.length !== 1) wrong.push(`${key} is there ${String(own.length)} times`);
    const isWhole = own[0]?.state === 'done' && own[0].applied === perBulk;
    if (!isWhole) wrong.push(`${key} ended as ${own[0]?.state ?? 'nothing'} with ${String(own[0]?.applied)} applied`);
  }
  for (const key of confirmed)
    if (!bulks.some((one) => one.key === key)) wrong.push(`${key} was confirmed and is gone`);
  if (here.size !== there.size) wrong.push(`${String(here.size)} documents here, ${String(there.size)} there`);
  const applied = results.reduce((sum, result) => sum + Number(result['applied']), 0);
  if (events.length !== bulkCount * perBulk) wrong.push(`the server has ${String(events.length)} events`);
  if (results.length !== bulkCount) wrong.push(`the server has ${String(results.length)} results`);
  if (applied !== bulkCount * perBulk) wrong.push(`the results count ${String(applied)} applied`);
  return wrong;
}

function byId(rows: unknown): ReadonlyMap<string, z.infer<typeof allDocs>[number]['doc']> {
  return new Map(allDocs.parse(rows).map(({ id, doc }) => [id, doc]));
}
