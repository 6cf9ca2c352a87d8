import { PlanRefusedError, type ActionPart, type AnyPlan, type Doc } from '@afield/client';
import { deleteContact, mergeContacts, moveContact } from '@afield/contacts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Documents } from './documents.js';

const here = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'x/y%#ü', 'constructor');
const named = fc.oneof({ weight: 3, arbitrary: here }, fc.constantFrom('__proto__', 'gone', '_local/a', 'r1', 'r2'));
const noLevel = fc.constantFrom<unknown>(undefined, null, 'a', 5, '', [], {}, { _id: 7 }, { parent: { _id: 'a' } });
const { lineage } = fc.letrec((tie) => ({
  lineage: fc.oneof(
    { depthSize: 'small' },
    noLevel,
    { weight: 4, arbitrary: fc.record({ _id: named, parent: tie('lineage') }) },
    fc.record({ _id: named, parent: tie('lineage'), name: fc.constant('n'), constructor: fc.constant(1) }),
  ),
}));
/** Short codes that several contacts share, that are numbers, or the ids of others. */
const code = fc.oneof(named, fc.constantFrom<unknown>('1', '2', 1, 2, '', null, {}));
const subject = fc.record(
  { patient_id: code, patient_uuid: code, place_id: code, place_uuid: code, note: fc.constant(null) },
  { requiredKeys: [] },
);
const contact = fc.record(
  { _id: here, parent: lineage, contact: lineage, patient_id: code, place_id: code },
  { requiredKeys: ['_id'] },
);
const report = fc.record(
  {
    _id: fc.oneof({ weight: 4, arbitrary: fc.constantFrom('r1', 'r2', 'r3', 'r4', 'r5') }, here),
    form: fc.constant('visit'),
    parent: lineage,
    contact: lineage,
    fields: fc.oneof({ weight: 3, arbitrary: subject }, fc.constantFrom<unknown>('text', [], null)),
    patient_id: code,
  },
  { requiredKeys: ['_id', 'form'] },
);
const docs = fc
  .array(fc.oneof({ weight: 2, arbitrary: contact }, report), { minLength: 6, maxLength: 16 })
  .map((all) => JSON.parse(JSON.stringify(all)) as Doc[]);
const asked: fc.Arbitrary<readonly [AnyPlan, object]> = fc.oneof(
  fc.tuple(fc.constant(moveContact), fc.record({ id: here, parent: fc.option(here) })),
  fc.tuple(fc.constant(deleteContact), fc.record({ id: named })),
  fc.tuple(
    fc.constant(mergeContacts),
    fc.record({ sources: fc.array(here, { minLength: 1, maxLength: 3 }), target: here }),
  ),
);

describe('R3 plans on documents of any shape', () => {
  it('are refused by a name or can be carried out, and planned again they have nothing to do', async () => {
    let carriedOut = 0;
    await fc.assert(
      fc.asyncProperty(docs, fc.array(here, { maxLength: 2 }), asked, async (start, gone, [plan, request]) => {
        const documents = new Documents(start);
        for (const id of gone) documents.remove(id);
        let parts: readonly ActionPart[];
        try {
          parts = await documents.plan(plan, request);
        } catch (error) {
          expect(error).toBeInstanceOf(PlanRefusedError);
          return;
        }
        if (parts.length > 0) carriedOut += 1;
        expect(documents.apply(parts).filter(({ is }) => is !== 'applied')).toEqual([]);
        expect(await documents.plan(plan, request)).toEqual([]);
      }),
      { numRuns: 3000 },
    );
    expect(carriedOut).toBeGreaterThan(300);
  });
});
