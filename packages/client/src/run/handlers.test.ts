import { describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineAction } from '../actions/define.js';
import { DivisibleError, RetryableError, SignInRequiredError } from '../model/errors.js';
import type { BatchAction, HandlerContext, HandlerResult } from '../model/handler.js';
import type { RowState } from '../queue/stored.js';
import type { Batch } from './batch.js';
import { runHandler } from './handlers.js';
import { LeaseLostError } from './transitions.js';

const closing = new AbortController();
const context = { signal: closing.signal } as HandlerContext;
const batch: Batch = {
  from: 10,
  action: 'x',
  operations: ['a', '', 'c'].map((id, place) => ({
    index: 10 + place,
    key: `k${String(place)}`,
    id,
    content: { place },
  })),
};
const open: RowState[] = batch.operations.map(() => ({ s: 'open' }));
const acting = (run: (batch: readonly { index: number }[]) => unknown): BatchAction =>
  defineAction({
    name: 'x',
    operation: z.strictObject({}),
    run: (list) => Promise.resolve(run(list) as HandlerResult),
  });

describe('an action that handles a batch as a whole', () => {
  it('what it does not name is applied; an operation without an id is not given to it', async () => {
    const given: number[] = [];
    const action = acting((list) => {
      given.push(...list.map(({ index }) => index));
      return { failed: [{ index: 12, code: 'no', reason: 'made up' }] };
    });
    const result = await runHandler(batch, open, action, context);
    expect(given).toEqual([10, 12]);
    expect(result.rows.map(({ s }) => s)).toEqual(['applied', 'failed', 'failed']);
    expect(result.failures.map(({ index, failure }) => [index, failure.code])).toEqual([
      [11, 'no_id'],
      [12, 'no'],
    ]);
  });

  it('R11 a request of the handler that the server refuses for something in it halves the batch, down to the one', async () => {
    const long: Batch = {
      ...batch,
      operations: Array.from({ length: 8 }, (_, place) => ({
        index: 10 + place,
        key: `k${String(place)}`,
        id: `d${String(place)}`,
        content: {},
      })),
    };
    const calls: number[][] = [];
    const action = acting((list) => {
      calls.push(list.map(({ index }) => index));
      if (list.some(({ index }) => index === 13)) throw new DivisibleError('too_large', 413);
      return {};
    });
    const result = await runHandler(
      long,
      long.operations.map(() => ({ s: 'open' })),
      defineAction({ ...action, run: async (list, one) => action.run(list, one) }),
      context,
    );
    expect(result.error).toBeUndefined();
    expect(result.rows.map(({ s }) => s)).toEqual([
      ...Array<string>(3).fill('applied'),
      'failed',
      ...Array<string>(4).fill('applied'),
    ]);
    expect(result.failures.map(({ index, failure }) => [index, failure.code])).toEqual([[13, 'too_large']]);
    expect(calls).toEqual([
      [10, 11, 12, 13, 14, 15, 16, 17],
      [10, 11, 12, 13],
      [10, 11],
      [12, 13],
      [12],
      [13],
      [14, 15, 16, 17],
    ]);
  });

  it.each([
    [undefined],
    [[{ index: 10, code: 'no', reason: 'x' }]],
    [{ failed: [{ index: '10', code: 'no', reason: 'x' }] }],
    [{ failed: [{ index: 10, code: 'no' }] }],
    [{ failed: [{ index: 99, code: 'no', reason: 'x' }] }],
    [{ failed: [{ index: 10, code: 'no', reason: 'x' }], alreadyApplied: [10] }],
    [{ alreadyApplied: [11] }],
    [{ alreadyApplied: 'all' }],
    [{ failures: [{ index: 10, code: 'no', reason: 'x' }] }],
    [{ failed: [{ index: 10, code: 'no', reason: 'x', more: 1 }] }],
    [{ failed: [{ index: 10, code: 'patient 4013', reason: 'x' }] }],
    [{ again: { indexes: [10] } }],
    [{ again: { indexes: [10], error: 'not yet' } }],
    [{ again: { indexes: [], error: new RetryableError('x') } }],
    [{ again: { indexes: [99], error: new RetryableError('x') } }],
    [{ again: { indexes: [10, 10], error: new RetryableError('x') } }],
    [{ again: { indexes: [10], error: new RetryableError('x') }, alreadyApplied: [10] }],
  ])('R5 an answer of another shape is a bug of the handler, never a success: %j', async (answer) => {
    const result = await runHandler(
      batch,
      open,
      acting(() => answer),
      context,
    );
    const isList = Array.isArray(answer);
    expect(result.error, String(isList)).toBeInstanceOf(TypeError);
    expect(result.rows[0]).toEqual({ s: 'open' });
  });

  it('R9 what it names as not done runs again alone; what the others brought is kept', async () => {
    const error = new RetryableError('a conflict');
    const first = await runHandler(
      batch,
      open,
      acting(() => ({ again: { indexes: [10], error } })),
      context,
    );
    expect(first.error).toBe(error);
    expect(first.rows.map(({ s }) => s)).toEqual(['open', 'failed', 'applied']);
    expect(first.failures).toHaveLength(1);
    const given: number[] = [];
    const rest = acting((list) => {
      given.push(...list.map(({ index }) => index));
      return {};
    });
    const second = await runHandler(batch, first.rows, rest, context);
    expect(given).toEqual([10]);
    expect(second).toEqual({ rows: [{ s: 'applied' }, { s: 'failed' }, { s: 'applied' }], failures: [] });
  });

  it('R5 an error of its own among those is a bug, or what the action says of it', async () => {
    const own = new RangeError('busy');
    const action = acting(() => ({ again: { indexes: [10], error: own } }));
    expect((await runHandler(batch, open, action, context)).error).toBe(own);
    const lenient = { ...action, classify: () => ({ kind: 'passing', code: 'busy' }) as const };
    expect((await runHandler(batch, open, lenient, context)).error).toMatchObject({ class: 'server', code: 'busy' });
  });

  it('R11 a refusal among those is halved too, until it is found', async () => {
    const calls: number[][] = [];
    const action = acting((list) => {
      calls.push(list.map(({ index }) => index));
      const indexes = list.map(({ index }) => index).filter((index) => index !== 10);
      return indexes.length === 0 ? {} : { again: { indexes, error: new DivisibleError('too_large', 413) } };
    });
    const result = await runHandler(batch, open, action, context);
    expect(calls).toEqual([[10, 12], [12]]);
    expect(result.rows.map(({ s }) => s)).toEqual(['applied', 'failed', 'failed']);
    expect(result.failures.at(-1)).toMatchObject({ index: 12, failure: { code: 'too_large' } });
    expect(result).not.toHaveProperty('error');
  });

  it.each([
    ['a conflict holds no other half up', new RetryableError('x', { class: 'conflict' }), 'applied'],
    ['a sign-in is waited for', new SignInRequiredError('unauthorized'), 'open'],
    ['a floor is kept', new RetryableError('x', { notBeforeMs: 1000 }), 'open'],
    ['another tab has taken over', new LeaseLostError(), 'open'],
    ['a bug ends it', new RangeError('x'), 'open'],
  ])('R10 R11 of a batch that was halved: %s', async (_what, error, other) => {
    const action = acting((list) => {
      if (list.length > 1) throw new DivisibleError('too_large', 413);
      return list[0]?.index === 10 ? { again: { indexes: [10], error } } : {};
    });
    const result = await runHandler(batch, open, action, context);
    expect(result.rows.map(({ s }) => s)).toEqual(['open', 'failed', other]);
    expect(result.error).toBe(error);
  });

  it('R1 what it throws as passing runs again, with nothing lost', async () => {
    const action = acting(() => {
      throw new RetryableError('not yet');
    });
    const result = await runHandler(batch, open, action, context);
    expect(result.error).toBeInstanceOf(RetryableError);
    expect(result.rows.map(({ s }) => s)).toEqual(['open', 'failed', 'open']);
  });

  it('a handler that never ends does not keep the client from closing', async () => {
    const running = runHandler(
      batch,
      open,
      { ...acting(() => ({})), run: () => new Promise(() => undefined) },
      context,
    );
    closing.abort();
    expect((await running).error).toMatchObject({ code: 'closed' });
  });
});
