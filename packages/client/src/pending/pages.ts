import type { z } from 'zod/mini';
import type { StoredDocs } from '../queue/stored-docs.js';

const perPage = 10;

/** Documents of the queue whose ids begin so, in their order, a page of them in memory. */
export async function* pagesOf<Shape extends z.ZodMiniType>(
  stored: StoredDocs,
  prefix: string,
  shape: Shape,
): AsyncGenerator<readonly z.infer<Shape>[]> {
  for (let from = prefix; ;) {
    const names = await stored.names(from, `${prefix}\uffff`, perPage);
    const ids = names.map(({ id }) => id);
    const docs = await stored.readMany(ids, shape);
    yield ids.flatMap((id) => docs.get(id) ?? []);
    const last = ids[ids.length - 1];
    if (last === undefined || ids.length < perPage) return;
    from = `${last}\u0000`;
  }
}
