import {
  defineAction,
  defineDocumentAction,
  InvalidRequestError,
  RetryableError,
  type AnyAction,
  type Doc,
} from '@afield/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { actionLaws } from './action-laws.js';
import { BrokenLawError, type Law } from './broken-law-error.js';
import { InvalidSampleError, type ActionSample } from './sample.js';

type Colour = { readonly to: string };
const operation = z.strictObject({ to: z.string() });
const isColoured = (doc: Doc, { to }: Colour): boolean => doc['colour'] === to;

/** Right, and then with a fault of its own. */
const setColour = defineDocumentAction<Colour>({
  name: 'set-colour',
  operation,
  isApplied: isColoured,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});
const samples: ActionSample[] = [
  {
    docs: [{ _id: 'a', colour: 'red' }, { _id: 'b', colour: 'blue' }, { _id: 'c' }],
    operations: [
      { id: 'a', to: 'blue' },
      { id: 'b', to: 'blue' },
      { id: 'nowhere', to: 'blue' },
      { id: '', to: 'blue' },
    ],
  },
  { doc: { _id: 'a' }, operation: { id: 'a', to: 'red', key: 'own' } },
];

async function brokenBy(action: AnyAction): Promise<BrokenLawError> {
  const error: unknown = await actionLaws(action, samples).catch((reason: unknown) => reason);
  if (error instanceof BrokenLawError) return error;
  throw new Error(`no law is broken: ${String(error)}`);
}

/** An action that handles a batch as a whole; `change` gives the document as it is to be written, if at all. */
function batchAction(change: (doc: Doc, content: Colour, index: number) => Doc | 'refuse' | undefined): AnyAction {
  return defineAction<Colour>({
    name: 'paint',
    operation,
    run: async (batch, { db }) => {
      const rows = await db.read(batch.map(({ id }) => id));
      const failed: { index: number; code: string; reason: string }[] = [];
      const writes: Doc[] = [];
      batch.forEach(({ index, content }, at) => {
        const doc = rows[at]?.doc;
        if (doc === undefined) return failed.push({ index, code: 'missing', reason: 'not there' });
        const changed = change(doc, content, index);
        if (changed === 'refuse') failed.push({ index, code: 'guard_mismatch', reason: 'is so already' });
        else if (changed !== undefined) writes.push(changed);
        return undefined;
      });
      const { error } = writes.length === 0 ? {} : await db.write(writes);
      if (error !== undefined) throw error;
      return { failed };
    },
  });
}

describe('actionLaws', () => {
  it('are kept by actions that are right', async () => {
    await actionLaws(setColour, samples);
    await actionLaws(
      batchAction((doc, { to }) => (isColoured(doc, { to }) ? undefined : { ...doc, colour: to })),
      samples,
    );
  });

  it('S8 are kept by an action that makes what is missing, also of what was deleted', async () => {
    const gone = { _id: 'gone', _deleted: true };
    const operations = ['gone', 'nowhere', 'a'].map((id) => ({ id, to: 'blue' }));
    const making = { ...setColour, missing: 'create' } as const;
    await actionLaws(making, [{ docs: [gone, { _id: 'a' }], operations }]);
    const forgetful = { ...making, apply: ({ _id }: Doc, { to }: Colour) => ({ _id, colour: to }) };
    await expect(actionLaws(forgetful, [{ docs: [gone], operations: operations.slice(0, 2) }])).resolves.toBe(
      undefined,
    );
    await expect(actionLaws(forgetful, [{ docs: [gone, { _id: 'a' }], operations }])).rejects.toMatchObject({
      law: 'keeps-the-rest',
    });
  });

  it('R9 are kept by an action that needs two attempts, and has a failure in the first one', async () => {
    const colour = batchAction((doc, { to }) => (isColoured(doc, { to }) ? undefined : { ...doc, colour: to }));
    if (colour.kind === 'document') throw new TypeError('not an action of batches');
    const inTwoAttempts = defineAction<Colour>({
      name: colour.name,
      operation,
      run: async (batch, context) => {
        const [first, ...rest] = batch;
        if (first === undefined || rest.length === 0 || context.attempt > 1) return colour.run(batch, context);
        const result = await colour.run(rest, context);
        return { ...result, again: { indexes: [first.index], error: new RetryableError('not yet') } };
      },
    });
    await actionLaws(inTwoAttempts, samples);
  });

  const broken: readonly (readonly [Law, string, AnyAction])[] = [
    ['twice-is-once', 'counts up', { ...setColour, isApplied: () => false, apply: countUp }],
    ['twice-is-once', 'counts up in a batch', batchAction((doc) => ({ ...doc, count: Number(doc['count'] ?? 0) + 1 }))],
    ['twice-is-once', 'notes that it is done in a second write', doneInASecondWrite()],
    [
      'own-effect',
      'refuses what it did itself',
      {
        ...setColour,
        isApplied: () => false,
        guard: (doc, op: Colour) => (isColoured(doc, op) ? { code: 'guard_mismatch', reason: 'is so' } : undefined),
      },
    ],
    [
      'own-effect',
      'refuses in a batch what it did itself',
      batchAction((doc, { to }) => (isColoured(doc, { to }) ? 'refuse' : { ...doc, colour: to })),
    ],
    ['applied-writes-nothing', 'writes again', { ...setColour, isApplied: () => false }],
    ['applied-writes-nothing', 'writes a batch again', batchAction((doc, { to }) => ({ ...doc, colour: to }))],
    [
      'keeps-the-rest',
      'makes the document anew',
      { ...setColour, apply: ({ _id, _attachments }, { to }: Colour) => ({ _id, _attachments, colour: to }) },
    ],
    [
      'keeps-the-rest',
      'loses the attachments',
      batchAction((doc, { to }) => {
        const rest = Object.fromEntries(Object.entries(doc).filter(([name]) => name !== '_attachments'));
        return isColoured(doc, { to }) ? undefined : { ...rest, _id: doc._id, colour: to };
      }),
    ],
    [
      'any-order',
      'writes the place in the list',
      batchAction((doc, { to }, index) => (isColoured(doc, { to }) ? undefined : { ...doc, colour: to, index })),
    ],
    [
      'comes-to-its-end',
      'throws',
      {
        ...setColour,
        isApplied: () => {
          throw new TypeError('no such field');
        },
      },
    ],
    [
      'comes-to-its-end',
      'never ends',
      { ...batchAction(() => undefined), run: () => new Promise(() => undefined) } as AnyAction,
    ],
  ];
  it.each(broken)('finds that "%s" is broken by an action that %s', async (law, _how, action) => {
    const error = await brokenBy(action);
    expect(error.law).toBe(law);
    expect(error.message).toContain(`"${action.name}" breaks the law "${law}"`);
    expect(error.sample.operations[0]).toMatchObject({ id: 'a' });
    expect(error.message).toContain('Sample: {"docs":[{"_id":"a"');
  });

  it('checks only the laws that are asked for', async () => {
    const writesAgain = { ...setColour, isApplied: () => false };
    await actionLaws(writesAgain, samples, { laws: ['twice-is-once', 'own-effect'] });
  });

  it('takes an arbitrary, finds a small sample, and runs it again', async () => {
    const colours = fc.constantFrom('red', 'green', 'blue');
    const arbitrary = fc.record({
      docs: fc.uniqueArray(fc.record({ _id: fc.constantFrom('a', 'b', 'c', 'd'), colour: colours }), {
        minLength: 1,
        selector: ({ _id }) => _id,
      }),
      operations: fc.uniqueArray(fc.record({ id: fc.constantFrom('a', 'b', 'c', 'd'), to: colours }), {
        minLength: 1,
        selector: ({ id }) => id,
      }),
    });
    await actionLaws(setColour, arbitrary, { runs: 10 });
    const noGreen = {
      ...setColour,
      apply: (doc: Doc, { to }: Colour) => (to === 'green' ? countUp(doc) : { ...doc, colour: to }),
    };
    const error: unknown = await actionLaws(noGreen, arbitrary, { replay: { seed: 7 } }).catch(
      (reason: unknown) => reason,
    );
    if (!(error instanceof BrokenLawError) || error.replay === undefined) throw new Error('nothing was found');
    expect(error.sample.docs).toHaveLength(1);
    expect(error.sample.operations).toEqual([{ id: error.sample.docs[0]?._id, to: 'green' }]);
    const again = actionLaws(noGreen, arbitrary, { replay: error.replay });
    await expect(again).rejects.toMatchObject({ sample: error.sample });
  });

  it('compares what an action changes at a server, also when the answer of it gets lost', async () => {
    const send = (isIdempotent: boolean): AnyAction =>
      defineAction<Colour>({
        name: 'send',
        operation,
        run: async (batch, { fetch }) => {
          const body = JSON.stringify(batch.map(({ key }) => key));
          await fetch('http://service.test/send', { method: isIdempotent ? 'PUT' : 'POST', body });
          return {};
        },
      });
    const world = () => {
      const sent: string[] = [];
      return {
        fetch: (_url: unknown, init?: RequestInit): Promise<Response> => {
          for (const key of JSON.parse(String(init?.body)) as string[]) {
            if (init?.method === 'POST' || !sent.includes(key)) sent.push(key);
          }
          return Promise.resolve(new Response('{}'));
        },
        read: () => sent.length,
      };
    };
    const given: ActionSample[] = [{ doc: { _id: 'a' }, operation: { id: 'a', to: 'x' } }];
    await actionLaws(send(true), given, { world });
    await expect(actionLaws(send(false), given, { world })).rejects.toMatchObject({ law: 'twice-is-once' });
  });

  it.each([
    [{ laws: ['nope'] }, 'there is no law "nope" (there are comes-to-its-end, twice-is-once'],
    [{ laws: [] }, '`laws` is empty'],
    [{ law: ['any-order'] }, 'there is no option `law` (it may have laws, world, runs, replay)'],
    [null, 'the options must be an object'],
    [{ runs: 0 }, '`runs` must be a whole number'],
    [{ world: {} }, '`world` must be a function'],
    [{ replay: {} }, '`replay` must be an object'],
  ])('S9 refuses options that would leave something unchecked: %#', async (options, words) => {
    const call = actionLaws(setColour, samples, options as object);
    await expect(call).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(call).rejects.toThrow(`actionLaws: ${words}`);
  });

  it('S9 names what is no action and what are no samples', async () => {
    await expect(actionLaws(undefined as unknown as AnyAction, samples)).rejects.toThrow('must be an action');
    await expect(actionLaws(setColour, undefined as unknown as [])).rejects.toThrow('`samples` must be a list');
  });

  it('refuses samples that say nothing', async () => {
    await expect(actionLaws(setColour, [])).rejects.toThrow(RangeError);
    const twoOnOne = [
      {
        docs: [],
        operations: [
          { id: 'a', to: 'x' },
          { id: 'a', to: 'y' },
        ],
      },
    ];
    await expect(actionLaws(setColour, twoOnOne)).rejects.toThrow(InvalidSampleError);
    const notStorable = [{ doc: { _id: 'a', _odd: 1 }, operation: { id: 'a', to: 'x' } }];
    await expect(actionLaws(setColour, notStorable)).rejects.toThrow(InvalidSampleError);
    const wrongShape = [{ doc: { _id: 'a' }, operation: { id: 'a', colour: 'x' } }];
    await expect(actionLaws(setColour, wrongShape)).rejects.toThrow(InvalidRequestError);
  });
});

function countUp(doc: Doc): Doc {
  return { ...doc, count: Number(doc['count'] ?? 0) + 1 };
}

/** Right when nothing happens between its two writes. */
function doneInASecondWrite(): AnyAction {
  return defineAction<Colour>({
    name: 'paint',
    operation,
    run: async (batch, { db }) => {
      for (const { id, key } of batch) {
        const doc = (await db.read([id]))[0]?.doc;
        if (doc === undefined || doc['done'] === key) continue;
        const first = await db.write([countUp(doc)]);
        if (first.error !== undefined) throw first.error;
        const counted = (await db.read([id]))[0]?.doc;
        if (counted !== undefined) await db.write([{ ...counted, done: key }]);
      }
      return {};
    },
  });
}
