import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod/mini';
import { defineAction, defineDocumentAction } from '../actions/define.js';
import { DivisibleError, RetryableError, SignInRequiredError, StoreTooNewError } from '../model/errors.js';
import type { BatchAction, DocumentAction, HandlerContext, OwnErrors } from '../model/handler.js';
import type { DocumentStore, WriteRow } from '../model/pouch.js';
import type { RowState } from '../queue/stored.js';
import { classifyError } from '../retry/classify.js';
import { runDocuments, type AttemptResult } from './documents.js';
import { events } from './event-source.fixture.js';
import { runHandler } from './handlers.js';

const ids = ['a', 'b', 'c'];
const batch = {
  from: 0,
  action: 'x',
  operations: ids.map((id, index) => ({ index, key: `k${id}`, id, content: {} })),
};
const open: RowState[] = ids.map(() => ({ s: 'open' }));
const guards = { saveIntent: () => Promise.resolve(), fence: () => Promise.resolve() };

class ServiceError extends Error {
  constructor(readonly status: number) {
    super('timeout after 4000ms');
    this.name = 'ServiceError';
  }
}

const handler = (thrown: unknown, classify: unknown): Promise<AttemptResult> => {
  const action: BatchAction = defineAction({
    name: 'x',
    operation: z.strictObject({}),
    run: () => Promise.reject(thrown as Error),
    classify: classify as NonNullable<OwnErrors['classify']>,
  });
  return runHandler(batch, open, action, { signal: new AbortController().signal } as HandlerContext);
};
const passesWhen503 = (error: unknown): unknown =>
  error instanceof ServiceError && error.status === 503
    ? { kind: 'passing', class: 'throttled', notBeforeMs: 9000 }
    : undefined;

describe('an action’s own `classify`', () => {
  it('R5 R7 makes an error of its own one that may pass; nothing of the batch is lost', async () => {
    const { error, rows, failures } = await handler(new ServiceError(503), passesWhen503);
    expect(classifyError(error)).toEqual({
      kind: 'passing',
      summary: { class: 'throttled', code: 'ServiceError' },
      notBeforeMs: 9000,
    });
    expect(rows).toEqual(open);
    expect(failures).toEqual([]);
  });

  it('R5 leaves what it does not name a bug, with the error as it was', async () => {
    const thrown = new ServiceError(400);
    expect((await handler(thrown, passesWhen503)).error).toBe(thrown);
    expect((await handler('a text', () => null)).error).toBe('a text');
  });

  it.each([
    new SignInRequiredError('unauthorized'),
    new RetryableError('another tab', { class: 'conflict', code: 'lease-lost' }),
    new StoreTooNewError('The queue', 9),
  ])('R5 R12 is never asked about an error of ours: %s', async (ours) => {
    let asked = 0;
    const { error } = await handler(ours, () => {
      asked++;
      return { kind: 'passing' };
    });
    expect(error).toBe(ours);
    expect(asked).toBe(0);
  });

  it('R5 R11 is not asked about a request that the server refused for something in it: that is found by halving', async () => {
    let asked = 0;
    const { error, failures } = await handler(new DivisibleError('too_large', 413), () => {
      asked++;
      return { kind: 'passing' };
    });
    expect(error).toBeUndefined();
    expect(failures.map(({ failure: { code } }) => code)).toEqual(open.map(() => 'too_large'));
    expect(asked).toBe(0);
  });

  it.each([
    ['a promise', Promise.resolve({ kind: 'passing' })],
    ['a text', 'passing'],
    ['true', true],
    ['another kind', { kind: 'failed', code: 'x' }],
    ['another class', { kind: 'passing', class: 'auth' }],
    ['a code with content', { kind: 'passing', code: 'patient 4013 was not found' }],
    ['a floor that is no number', { kind: 'passing', notBeforeMs: '9' }],
    ['a field that it does not know', { kind: 'passing', notBeforeMS: 9 }],
  ])('R5 that answers with %s is the action’s bug', async (_name, answer) => {
    const { error } = await handler(new ServiceError(503), () => answer);
    expect(error).toBeInstanceOf(TypeError);
    expect(classifyError(error).kind).toBe('bug');
  });

  it('R5 an async one that fails is the action’s bug, and leaves no rejection that nobody hears', async () => {
    const late = Promise.reject(new Error('made up'));
    const heard = vi.spyOn(late, 'catch');
    const { error } = await handler(new ServiceError(503), () => late);
    expect(classifyError(error).kind).toBe('bug');
    expect(heard).toHaveBeenCalledOnce();
  });

  it.each([new RangeError('made up'), new RetryableError('made up'), new SignInRequiredError('forbidden')])(
    'R5 that throws is the action’s bug, whatever it throws: %s',
    async (thrown) => {
      const { error } = await handler(new ServiceError(503), () => {
        throw thrown;
      });
      expect(classifyError(error).kind).toBe('bug');
    },
  );

  it.each([
    [Infinity, 3_600_000],
    [1e15, 3_600_000],
    [-5, 0],
  ])('R13 a floor of %d ms counts as %d: never a wait without end', async (notBeforeMs, expected) => {
    const { error } = await handler(new ServiceError(503), () => ({ kind: 'passing', notBeforeMs }));
    const verdict = classifyError(error);
    // A floor that is not finite is another shape.
    if (Number.isFinite(notBeforeMs)) expect(verdict).toMatchObject({ kind: 'passing', notBeforeMs: expected });
    else expect(verdict.kind).toBe('bug');
  });

  it('R5 a wrong answer of the action itself stays its bug', async () => {
    const action: BatchAction = {
      ...defineAction({ name: 'x', operation: z.strictObject({}), run: () => Promise.resolve([] as never) }),
      classify: () => ({ kind: 'passing' }),
    };
    const result = await runHandler(batch, open, action, { signal: new AbortController().signal } as HandlerContext);
    expect(classifyError(result.error).kind).toBe('bug');
  });

  it.each(['isApplied', 'guard', 'apply'] as const)(
    'R5 R7 is asked about what `%s` of a document action throws',
    async (part) => {
      const throwing = {
        ...setDone,
        classify: passesWhen503 as NonNullable<OwnErrors['classify']>,
        [part]: () => {
          throw new ServiceError(503);
        },
      };
      const { error, rows } = await runDocuments(batch, open, throwing, storeAnswering([]), guards, events);
      expect(classifyError(error)).toMatchObject({ kind: 'passing', notBeforeMs: 9000 });
      expect(rows).toEqual(open);
    },
  );
});

const setDone: DocumentAction = defineDocumentAction({
  name: 'x',
  operation: z.strictObject({}),
  isApplied: (doc) => doc['done'] === true,
  apply: (doc) => ({ ...doc, done: true }),
});
const storeAnswering = (rows: readonly WriteRow[]): DocumentStore => ({
  read: () => Promise.resolve(ids.map((id) => ({ id, rev: '1-x', deleted: false, doc: { _id: id, _rev: '1-x' } }))),
  readRevisions: () => Promise.resolve([]),
  write: () => Promise.resolve({ rows }),
});
const refused = (id: string, error: string): WriteRow => ({ id, ok: false, error, reason: 'made up' });
const written = (id: string): WriteRow => ({ id, ok: true, rev: '2-x' });

describe('an action’s own `classifyRow`', () => {
  const attempt = (rows: readonly WriteRow[], classifyRow: unknown): Promise<AttemptResult> => {
    const hook = classifyRow as NonNullable<DocumentAction['classifyRow']>;
    return runDocuments(batch, open, { ...setDone, classifyRow: hook }, storeAnswering(rows), guards, events);
  };

  it('R4 gives a refused row a code of its own, and leaves the others as the table says', async () => {
    const rows = [written('a'), refused('b', 'forbidden'), refused('c', 'missing_stub')];
    const { failures, error } = await attempt(rows, ({ id, error: word, reason }: Record<string, string>) =>
      id === 'b' ? { kind: 'failed', code: 'closed-month', reason: `${word ?? ''}: ${reason ?? ''}` } : undefined,
    );
    expect(error).toBeUndefined();
    expect(failures.map(({ index, failure }) => [index, failure])).toEqual([
      [1, { code: 'closed-month', reason: 'forbidden: made up' }],
      [2, { code: 'missing_stub', reason: 'made up' }],
    ]);
  });

  it('R7 R10 says that it may pass: the row runs again, surely not written, the others have their outcomes', async () => {
    const rows = [written('a'), refused('b', 'forbidden'), refused('c', 'missing_stub')];
    const result = await attempt(rows, ({ error }: Record<string, string>) =>
      error === 'forbidden' ? { kind: 'passing', code: 'not-open-yet', notBeforeMs: 9000 } : undefined,
    );
    expect(classifyError(result.error)).toEqual({
      kind: 'passing',
      summary: { class: 'server', code: 'not-open-yet' },
      notBeforeMs: 9000,
    });
    expect(result.rows.map(({ s }) => s)).toEqual(['applied', 'open', 'failed']);
    expect(result.failures).toHaveLength(1);
  });

  it('R7 R12 is not asked about a conflict, the server’s trouble or signing in', async () => {
    const asked: unknown[] = [];
    const hook = (row: unknown): unknown => {
      asked.push(row);
      return { kind: 'failed', code: 'mine' };
    };
    for (const word of ['conflict', 'internal_server_error', 'unauthorized']) {
      const { failures, error } = await attempt([written('a'), refused('b', word), written('c')], hook);
      expect(failures).toEqual([]);
      expect(classifyError(error).kind).toBe(word === 'unauthorized' ? 'auth' : 'passing');
    }
    expect(asked).toEqual([]);
  });

  it.each([
    ['throws', undefined],
    ['answers with a text', 'failed'],
    ['answers with no code', { kind: 'failed' }],
    ['answers with a promise', Promise.resolve()],
  ])('R5 that %s is the action’s bug; what was written keeps its outcome', async (_name, answer) => {
    const { error, rows, failures } = await attempt(
      [refused('a', 'forbidden'), written('b'), refused('c', 'unauthorized')],
      () => {
        if (answer === undefined) throw new RetryableError('made up');
        return answer;
      },
    );
    expect(classifyError(error).kind).toBe('bug');
    expect(rows.map(({ s }) => s)).toEqual(['open', 'applied', 'open']);
    expect(failures).toEqual([]);
  });
});
