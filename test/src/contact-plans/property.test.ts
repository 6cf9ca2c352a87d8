import type { AnyPlan, Doc } from '@afield/client';
import { deleteContact, mergeContacts, moveContact } from '@afield/contacts';
import { wrongLineages } from '@afield/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Documents, total } from './documents.js';
import { forest, type Forest } from './forest.js';

interface Request {
  readonly plan: AnyPlan;
  readonly request: object;
}

interface Chosen {
  readonly kind: 'move' | 'to-top' | 'merge' | 'delete';
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

const chosen: fc.Arbitrary<Chosen> = fc.record({
  kind: fc.constantFrom('move', 'to-top', 'merge', 'delete'),
  a: fc.nat(),
  b: fc.nat(),
  c: fc.nat(),
});

function requestOf({ ids }: Forest, { kind, a, b, c }: Chosen): Request {
  const [id, other, third] = [a, b, c].map((one) => ids[one % ids.length] ?? '');
  switch (kind) {
    case 'move':
      return { plan: moveContact, request: { id, parent: other } };
    case 'to-top':
      return { plan: moveContact, request: { id, parent: null } };
    case 'merge':
      return { plan: mergeContacts, request: { sources: [id, third], target: other } };
    case 'delete':
      return { plan: deleteContact, request: { id } };
  }
}

const sorted = (documents: Documents): readonly Doc[] =>
  [...documents.live].sort((one, other) => (one._id < other._id ? -1 : 1));
const aboveIn = (documents: Documents, id: string): string[] => {
  const ids: string[] = [];
  for (let level = documents.get(id)?.['parent'] as Doc | undefined; level !== undefined;) {
    ids.push(level._id);
    level = level['parent'] as Doc | undefined;
  }
  return ids;
};

/** What is refused must be so for a reason that the documents show. */
function assertRefusal(documents: Documents, { plan, request }: Request, error: unknown): void {
  const { code } = error as { code?: string };
  const { id, parent, sources, target } = request as {
    id?: string;
    parent?: string | null;
    sources?: string[];
    target?: string;
  };
  const named = [...(plan === deleteContact ? [] : [id]), parent, ...(sources ?? []), target];
  const needed = named.filter((one) => typeof one === 'string');
  if (code === 'missing') {
    expect(needed.some((one) => documents.get(one) === undefined)).toBe(true);
    return;
  }
  expect(code).toBe('circular_lineage');
  const to = parent ?? target ?? '';
  const all = [to, ...aboveIn(documents, to)];
  expect([id, ...(sources ?? [])].some((one) => one !== undefined && all.includes(one))).toBe(true);
}

/** The operations; undefined when the plan refuses the request. */
async function planned(
  documents: Documents,
  request: Request,
): Promise<Awaited<ReturnType<Documents['plan']>> | undefined> {
  try {
    return await documents.plan(request.plan, request.request);
  } catch (error) {
    assertRefusal(documents, request, error);
    return undefined;
  }
}

describe('R3 plans on random forests', () => {
  it('leave each lineage right, and planned again they have nothing to do', async () => {
    await fc.assert(
      fc.asyncProperty(forest, fc.array(chosen, { minLength: 1, maxLength: 4 }), async (start, all) => {
        const documents = new Documents(start.docs);
        expect(wrongLineages(documents.live)).toEqual([]);
        for (const one of all) {
          const request = requestOf(start, one);
          const parts = await planned(documents, request);
          if (parts === undefined) continue;
          const outcomes = documents.apply(parts);
          expect(outcomes.filter(({ is }) => is !== 'applied')).toEqual([]);
          expect(wrongLineages(documents.live)).toEqual([]);
          expect(await documents.plan(request.plan, request.request)).toEqual([]);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('cut off after any operation and planned again they end as if they had not been', async () => {
    await fc.assert(
      fc.asyncProperty(forest, chosen, fc.nat(), async (start, one, cut) => {
        const whole = new Documents(start.docs);
        const request = requestOf(start, one);
        const parts = await planned(whole, request);
        if (parts === undefined) return;
        const interrupted = whole.copy();
        const after = cut % (total(parts) + 1);
        whole.apply(parts);
        interrupted.apply(parts, (place) => place < after);
        expect((await interrupted.run(request.plan, request.request)).filter(({ is }) => is !== 'applied')).toEqual([]);
        expect(sorted(interrupted)).toEqual(sorted(whole));
      }),
      { numRuns: 500 },
    );
  });

  it('with any part of their operations undone they are planned again, and all is right', async () => {
    await fc.assert(
      fc.asyncProperty(
        forest,
        chosen,
        fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
        async (start, one, taken) => {
          const documents = new Documents(start.docs);
          const request = requestOf(start, one);
          const parts = await planned(documents, request);
          if (parts === undefined) return;
          documents.apply(parts, (place) => taken[place] === true);
          await documents.run(request.plan, request.request);
          expect(wrongLineages(documents.live)).toEqual([]);
          expect(await documents.plan(request.plan, request.request)).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('a contact that someone else has moved meanwhile stays where they put it: guard_mismatch', async () => {
    await fc.assert(
      fc.asyncProperty(forest, chosen, fc.nat(), async (start, one, which) => {
        const documents = new Documents(start.docs);
        const request = requestOf(start, one);
        const parts = await planned(documents, request);
        const moves = parts?.find(({ action }) => action === 'set-parent')?.operations ?? [];
        const id = String(moves[which % Math.max(1, moves.length)]?.id ?? '');
        const contact = documents.get(id);
        if (parts === undefined || contact === undefined) return;
        const elsewhere = { ...contact, parent: { _id: 'elsewhere' } };
        documents.put(elsewhere);
        const outcomes = documents.apply(parts);
        expect(outcomes).toContainEqual({ action: 'set-parent', id, is: 'guard_mismatch' });
        expect(documents.get(id)?.['parent']).toEqual({ _id: 'elsewhere' });
      }),
    );
  });

  it('R6 after a merge nothing names a source any more, and what was about it is about the target', async () => {
    await fc.assert(
      fc.asyncProperty(forest, chosen, async (start, one) => {
        const documents = new Documents(start.docs);
        const request = requestOf(start, { ...one, kind: 'merge' });
        const { sources, target } = request.request as { sources: string[]; target: string };
        const codes = new Map([...sources, target].map((id) => [id, documents.get(id)?.['patient_id']] as const));
        const isAbout = (doc: Doc, ids: readonly string[]): boolean => {
          const fields = doc['fields'] as Record<string, unknown> | undefined;
          const named = [doc, fields].flatMap((place) => [
            place?.['patient_id'],
            place?.['patient_uuid'],
            place?.['place_id'],
          ]);
          const all = ids.flatMap((id) => [id, codes.get(id)]).filter((code) => code !== undefined);
          return doc['form'] !== undefined && named.some((value) => all.includes(String(value)));
        };
        const about = documents.live.filter((doc) => isAbout(doc, [...sources, target])).map(({ _id }) => _id);
        const parts = await planned(documents, request);
        if (parts === undefined) return;
        documents.apply(parts);
        const text = JSON.stringify(documents.live);
        for (const source of sources) expect(text).not.toContain(`"${source}"`);
        expect(documents.live.filter((doc) => isAbout(doc, sources))).toEqual([]);
        expect(documents.live.filter((doc) => isAbout(doc, [target])).map(({ _id }) => _id)).toEqual(about);
      }),
      { numRuns: 300 },
    );
  });

  it('S8 after a deletion nothing below it is left, nothing about it, no place that names it, and all else is as it was', async () => {
    await fc.assert(
      fc.asyncProperty(forest, fc.nat(), async (start, which) => {
        const documents = new Documents(start.docs);
        const id = start.ids[which % start.ids.length] ?? '';
        const gone = documents.live.filter(
          (doc) => doc['form'] === undefined && [doc._id, ...aboveIn(documents, doc._id)].includes(id),
        );
        const ids = new Set([id, ...gone.map(({ _id }) => _id)]);
        const codes = new Set([...ids, ...gone.map((doc) => doc['patient_id'])]);
        const expected = documents.live
          .filter((doc) => !ids.has(doc._id))
          .filter((doc) => {
            const fields = doc['fields'] as Record<string, unknown> | undefined;
            const named = [doc, fields].flatMap((at) => [at?.['patient_id'], at?.['patient_uuid'], at?.['place_id']]);
            return doc['form'] === undefined || !named.some((value) => value !== undefined && codes.has(String(value)));
          })
          .map((doc) => {
            const contact = doc['contact'] as Doc | undefined;
            const names =
              contact !== undefined && (ids.has(contact._id) || JSON.stringify(contact).includes(`"${id}"`));
            if (doc['form'] !== undefined || !names) return doc;
            return Object.fromEntries(Object.entries(doc).filter(([field]) => field !== 'contact')) as unknown as Doc;
          });
        const parts = await documents.plan(deleteContact, { id });
        const deletions =
          parts.find(({ action }) => action === 'delete')?.operations.map((one) => String(one.id)) ?? [];
        // From the bottom up: whoever goes has nobody below who is still there.
        for (const [at, one] of deletions.entries()) {
          const later = deletions.slice(at + 1).filter((other) => aboveIn(documents, other).includes(one));
          expect(later).toEqual([]);
        }
        if (documents.get(id) !== undefined) expect(deletions.at(-1)).toBe(id);
        documents.apply(parts);
        expect(sorted(documents)).toEqual([...expected].sort((one, other) => (one._id < other._id ? -1 : 1)));
      }),
      { numRuns: 300 },
    );
  });
});
