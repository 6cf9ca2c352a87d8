import { describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineAction } from '../actions/define.js';
import { DivisibleError, RetryableError } from '../model/errors.js';
import type { BatchAction, HandlerContext, HandlerResult } from '../model/handler.js';
import type { RowState } from '../queue/stored.js';
import type { Batch } from './batch.js';
import { runHandler } from './handlers.js';

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
