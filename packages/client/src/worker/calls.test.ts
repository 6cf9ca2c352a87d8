import { firstValueFrom, NEVER } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { definePlan } from '../actions/plan.js';
import type { Client } from '../model/client.js';
import * as errors from '../model/errors.js';
import { paint } from '../test-bed.fixture.js';
import type { RemoteClient } from './connect.js';
import { WorkerBed } from './worker-bed.fixture.js';

const {
  AfieldError,
  ClientClosedError,
  DivisibleError,
  IdempotencyConflictError,
  IndexNotReadyError,
  InvalidRequestError,
  OtherStoreError,
  NotDrainedError,
  PendingFileError,
  PlanRefusedError,
  RetryableError,
  SignInRequiredError,
  StoreLeftError,
  StoreTooNewError,
  UnsyncedWorkError,
} = errors;

describe('a client in a worker: calls', () => {
  let bed: WorkerBed;
  beforeEach(() => {
    bed = new WorkerBed();
  });
  afterEach(() => bed.close());

  /** A client that answers every call as `answer` says. */
  const answering = (answer: (method: string, args: unknown[]) => unknown): Client => {
    const index = { state$: NEVER };
    const answers = (own: object, prefix: string): object =>
      new Proxy(own, {
        get: (target, method: string) =>
          method in target
            ? (Reflect.get(target, method) as unknown)
            : (...args: unknown[]) => answer(`${prefix}${method}`, args),
      });
    const sync = answers({}, 'sync.');
    return answers({ storeId: 'store-1', index: () => answers(index, 'index.'), sync }, '') as Client;
  };

  it('every call of a client has its counterpart in the page, with all that is given and answered', async () => {
    const { remote } = bed.pair(answering((method, args) => ({ method, args })));
    const filter = { code: 'missing' };
    const request = paint(['a'], 'blue');
    const plan = { target: 'local', plan: 'p', request: {} } as const;
    const calls: Partial<Record<keyof RemoteClient, unknown[]>> = {
      enqueue: [request],
      dryRun: [plan],
      start: [],
      pause: ['b1'],
      resume: ['b1'],
      cancel: ['b1'],
      retryRest: ['b1'],
      listNotDone: ['b1'],
      listFailures: [{ ...filter, resolved: true }],
      retryFailed: [filter, { ratePerSecond: 1 }],
      editAndRetry: ['f1', { id: 'a' }, { ratePerSecond: 1 }],
      discard: [filter],
      revert: [filter],
      forgetDocuments: [['a']],
      listEvents: [{ after: { sequence: 1, index: 0 }, limit: 3 }],
      listQuarantined: [{ resolved: true }],
      resolveQuarantined: ['q1', 'keep-first'],
      drained: [],
      exportPending: [],
      importPending: ['{}'],
    };
    for (const [method, args] of Object.entries(calls)) {
      const called = Reflect.get(remote, method) as (...args: unknown[]) => unknown;
      expect(await called.apply(remote, args)).toEqual({ method, args });
    }
    expect(await remote.storeId).toBe('store-1');
    const seen = { denied: [{ id: 'a' }] };
    expect(await remote.sync.report(seen)).toEqual({ method: 'sync.report', args: [seen] });
    const index = remote.index('by-name');
    expect(index.name).toBe('by-name');
    expect(await index.query('a', { limit: 1 })).toEqual({ method: 'index.query', args: ['a', { limit: 1 }] });
    for (const method of ['build', 'resume', 'rebuild', 'skipped'] as const) {
      expect(await index[method]()).toEqual({ method: `index.${method}`, args: [] });
    }
  });

  it('what answers nothing arrives too', async () => {
    const called: string[] = [];
    const { remote } = bed.pair(answering((method) => void called.push(method)));
    remote.syncNow();
    remote.signedIn();
    await bed.until(() => called.length === 2);
    expect(called).toEqual(['syncNow', 'signedIn']);
  });

  it('S11 the signal of drained() ends the wait in the page, and an answer comes as from the client', async () => {
    const { remote } = bed.pair(answering(() => new Promise(() => undefined)));
    const abort = new AbortController();
    const waiting = remote.drained({ signal: abort.signal }).catch((error: unknown) => error);
    abort.abort(new Error('no more'));
    expect(await waiting).toMatchObject({ message: 'no more' });
    expect(await remote.drained({ signal: abort.signal }).catch((error: unknown) => error)).toBe(abort.signal.reason);
  });

  it('a request is made durable, run and shown; what failed is listed, edited and retried', async () => {
    const { client, remote } = bed.pair();
    await bed.seed(client, 3);
    const { bulkOperationId, total } = await remote.enqueue(paint(['d0000', 'd0001', 'nowhere'], 'blue'));
    expect(total).toBe(3);
    expect(await bed.settled(client, bulkOperationId)).toMatchObject({ applied: 2, failed: 1 });
    expect(await firstValueFrom(remote.failures$)).toMatchObject([{ id: 'nowhere', code: 'missing' }]);
    const [failure] = await remote.listFailures({ code: 'missing' });
    const { bulkOperations } = await remote.editAndRetry(failure?.failureId ?? '', { id: 'd0002', to: 'green' });
    await bed.settled(client, bulkOperations[0]?.bulkOperationId ?? '');
    expect(await bed.colours(client)).toEqual(['blue', 'blue', 'green']);
  });

  it('O4 a wrong request, and a key with other content, arrive as the errors that they are', async () => {
    const { remote } = bed.pair();
    const wrong = await remote.enqueue(paint(['a'], 7 as unknown as string)).catch((error: unknown) => error);
    expect(wrong).toBeInstanceOf(InvalidRequestError);
    expect(wrong).toMatchObject({ code: 'invalid_request', issueCount: 1, issues: [{ index: 0, field: 'to' }] });
    await remote.enqueue(paint(['a'], 'blue', { key: 'k' }));
    const conflict = await remote.enqueue(paint(['a'], 'red', { key: 'k' })).catch((error: unknown) => error);
    expect(conflict).toBeInstanceOf(IdempotencyConflictError);
    expect(conflict).toMatchObject({ conflictCount: 1, conflicts: [{ index: -1, key: 'k' }] });
  });

  it('what a plan threw arrives with its name and message', async () => {
    const plan = definePlan({
      name: 'broken',
      request: z.object({}),
      plan: () => Promise.reject(new RangeError('out of it', { cause: new AfieldError('deep', 'Deep.') })),
    });
    const { remote } = bed.pair(bed.open({ plans: [plan] }));
    const error = await remote.dryRun({ target: 'local', plan: 'broken', request: {} }).catch((one: unknown) => one);
    expect(error).toMatchObject({
      name: 'RangeError',
      message: 'out of it',
      cause: { code: 'deep', message: 'Deep.' },
    });
    expect((error as Error).cause).toBeInstanceOf(AfieldError);
  });

  it('every error class of ours keeps its class, message and fields', async () => {
    const conflict = { index: 1, key: 'k', bulkOperationId: undefined, quarantineId: 'q' };
    const thrown = [
      new AfieldError('own_code', 'Own.'),
      new InvalidRequestError([{ index: 3, field: 'to', message: 'is wrong' }], 7, 'read'),
      new IdempotencyConflictError([conflict], 4),
      new NotDrainedError({
        pending: 0,
        failed: 1,
        stopped: 0,
        quarantined: 2,
        unpublished: 0,
        unreported: 0,
        unconfirmed: 0,
      }),
      new ClientClosedError(),
      new OtherStoreError('other_server'),
      new StoreTooNewError('The queue', 9),
      new StoreLeftError(),
      new UnsyncedWorkError({
        pending: 1,
        failed: 0,
        stopped: 0,
        quarantined: 0,
        unpublished: 0,
        unreported: 0,
        unconfirmed: 2,
      }),
      new PendingFileError('file_invalid', 'is no JSON', 3, 'rows'),
      new RetryableError('Later.', { class: 'throttled', code: '429', notBeforeMs: 500 }),
      new IndexNotReadyError('by-name', 'parked', 'keys'),
      new PlanRefusedError('below_itself', 'The target lies below.'),
      new SignInRequiredError('forbidden'),
      new DivisibleError('too_large', 413),
    ];
    const untested = Object.values(errors).filter((one) => !thrown.some((error) => error.constructor === one));
    expect(untested).toEqual([]);
    const { remote } = bed.pair(
      answering((_, [at]) => {
        throw thrown[Number(at)] as Error;
      }),
    );
    for (const [at, error] of thrown.entries()) {
      const arrived = (await remote.pause(String(at)).catch((one: unknown) => one)) as Error;
      expect(arrived.constructor).toBe(error.constructor);
      expect({ ...arrived, message: arrived.message, name: arrived.name }).toEqual({
        ...error,
        message: error.message,
        name: error.name,
      });
    }
  });

  it('an error of an app that extends one of ours arrives as ours; what is no error, as its text', async () => {
    class OwnError extends RetryableError {
      readonly secret = (): string => 'not for others';
    }
    const thrown: unknown[] = [new OwnError('Own.', { code: 'own' }), 'just a text'];
    const { remote } = bed.pair(answering((_, [at]) => Promise.reject(thrown[Number(at)] as Error)));
    const own = await remote.pause('0').catch((one: unknown) => one);
    expect(own).toBeInstanceOf(RetryableError);
    expect(own).toMatchObject({ name: 'OwnError', code: 'own' });
    expect(own).not.toHaveProperty('secret');
    await expect(remote.pause('1')).rejects.toThrow('just a text');
  });

  it('an error that is odd arrives all the same: no call stays open', async () => {
    const odd = (fields: object): Error => Object.defineProperties(new Error('odd'), fields as PropertyDescriptorMap);
    class OwnError extends AfieldError {
      override readonly code = 5 as unknown as string;
    }
    const throws = {
      get: () => {
        throw new Error('no');
      },
    };
    const thrown: [unknown, object][] = [
      [odd({ message: { value: { text: 'an object' } } }), { name: 'Error' }],
      [odd({ name: { value: 5 } }), { message: 'odd' }],
      [odd({ stack: { value: 7 } }), { message: 'odd' }],
      [odd({ message: throws }), { code: 'unreadable_error' }],
      [odd({ cause: { value: { reason: 'of another kind' } } }), { message: 'odd' }],
      [new OwnError('own', 'Own.'), { message: 'Own.' }],
      [new InvalidRequestError([{ index: 0, field: 'a', message: (() => 1) as unknown as string }], 1), {}],
      [Object.create(null), {}],
      [
        { name: 'not_found', message: 'missing', status: 404 },
        { name: 'not_found', message: 'missing' },
      ],
      [undefined, { message: 'undefined' }],
    ];
    const { remote } = bed.pair(answering((_, [at]) => Promise.reject(thrown[Number(at)]?.[0] as Error)));
    for (const [at, [, expected]] of thrown.entries()) {
      const arrived = await remote.pause(String(at)).catch((one: unknown) => one);
      expect(arrived).toBeInstanceOf(Error);
      expect(arrived).toMatchObject(expected);
    }
  });

  it('S9 what is no plain data is refused in the page, with its place; an answer that is none is said so', async () => {
    const { remote } = bed.pair(answering(() => ({ f: () => 1 })));
    const request = paint(['a'], (() => 'blue') as unknown as string);
    const error = await remote.enqueue(request).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ issues: [{ index: -1, field: 'actions.0.operations.0.to' }] });
    await expect(remote.pause('b')).rejects.toMatchObject({ code: 'not_plain_data' });
  });

  it('a name of an index that is no text is answered as one that is not there', async () => {
    const { remote } = bed.pair();
    for (const name of [undefined, null, 5, () => 'by-name', Symbol('by-name')]) {
      const index = remote.index(name as unknown as string);
      await expect(index.query('a')).rejects.toMatchObject({ code: 'unknown_index' });
      await expect(firstValueFrom(index.state$)).rejects.toMatchObject({ code: 'unknown_index' });
    }
  });

  it('the caller may change its request as soon as it has called, also before the worker is there', async () => {
    const client = bed.open();
    await bed.seed(client, 2);
    const { page, worker } = bed.endpoints();
    const remote = bed.connect(page);
    const operations = [{ id: 'd0000', to: 'blue' }];
    const queued = remote.enqueue({ target: 'local', actions: [{ action: 'set-colour', operations }] });
    operations[0] = { id: 'd0001', to: 'green' };
    bed.serve(client, worker);
    await bed.settled(client, (await queued).bulkOperationId);
    expect(await bed.colours(client)).toEqual(['blue', 'red']);
  });

  it('calls arrive in their order, and answers in the order in which the client gives them', async () => {
    const called: string[] = [];
    const answers = new Map<string, () => void>();
    const { remote } = bed.pair(
      answering((_, [id]) => {
        called.push(String(id));
        return new Promise<void>((resolve) => answers.set(String(id), resolve));
      }),
    );
    const answered: string[] = [];
    for (const id of ['a', 'b', 'c']) void remote.pause(id).then(() => answered.push(id));
    await bed.until(() => called.length === 3);
    expect(called).toEqual(['a', 'b', 'c']);
    for (const id of ['b', 'c', 'a']) answers.get(id)?.();
    await bed.until(() => answered.length === 3);
    expect(answered).toEqual(['b', 'c', 'a']);
  });

  it('close() closes the client in the worker; then all calls say that it is closed', async () => {
    const { client, remote } = bed.pair();
    await remote.enqueue(paint(['a'], 'blue'));
    await remote.close();
    await remote.close();
    await expect(client.enqueue(paint(['a'], 'red'))).rejects.toBeInstanceOf(ClientClosedError);
    await expect(remote.enqueue(paint(['a'], 'red'))).rejects.toBeInstanceOf(ClientClosedError);
    expect(() => {
      remote.syncNow();
    }).toThrow(ClientClosedError);
    await expect(remote.storeId).rejects.toBeInstanceOf(ClientClosedError);
  });

  it('S7 logout() removes the store in the worker, with the note in the page; a refused one leaves everything open', async () => {
    const { client, remote } = bed.pair();
    await remote.enqueue(paint(['a'], 'blue'));
    await bed.until(async () => (await client.listFailures()).length === 1);
    const over = async (call: Promise<void>): Promise<unknown> => {
      let answer: unknown;
      call.then(
        () => (answer = 'left'),
        (error: unknown) => (answer = error),
      );
      await bed.until(() => answer !== undefined, 100);
      return answer;
    };
    expect(await over(remote.logout())).toMatchObject({ counts: { failed: 1, pending: 0 } });
    expect(await remote.discard({})).toBe(1);
    expect(await over(remote.logout())).toBe('left');
    await expect(remote.enqueue(paint(['a'], 'red'))).rejects.toBeInstanceOf(ClientClosedError);
    await expect(client.enqueue(paint(['a'], 'red'))).rejects.toBeInstanceOf(ClientClosedError);
    await remote.close();
  });

  it('a client that was closed in the worker, or by another page, says so', async () => {
    const { client, remote } = bed.pair();
    await client.close();
    await expect(remote.enqueue(paint(['a'], 'blue'))).rejects.toBeInstanceOf(ClientClosedError);
  });
});
