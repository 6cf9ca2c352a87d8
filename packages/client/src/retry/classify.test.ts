import { describe, expect, it } from 'vitest';
import { DivisibleError, RetryableError, SignInRequiredError } from '../model/errors.js';
import { classifyError, classifyRow, localStoreError } from './classify.js';

describe('rows of a bulk write', () => {
  it.each([
    ['conflict', 'conflict', 'conflict'],
    ['internal_server_error', 'passing', 'internal_server_error'],
    ['timeout', 'passing', 'timeout'],
    ['service_unavailable', 'passing', 'service_unavailable'],
    ['unknown_error', 'passing', 'unknown_error'],
    ['unauthorized', 'auth', 'unauthorized'],
    ['forbidden', 'failed', 'forbidden'],
    ['doc_validation', 'failed', 'invalid_doc'],
    ['missing_stub', 'failed', 'missing_stub'],
    ['made_up', 'failed', 'unexpected'],
  ])('R4 R7 a row `%s` is %s', (error, kind, code) => {
    expect(classifyRow(error)).toEqual({ kind, code, ...(kind === 'passing' ? { class: 'server' } : {}) });
  });
});

describe('errors that end an attempt', () => {
  it('R5 what no wrapper marked is a bug of the handler, a bare TypeError too', () => {
    expect(classifyError(new TypeError('Failed to fetch')).kind).toBe('bug');
    expect(classifyError('timeout after 4000ms').kind).toBe('bug');
    expect(classifyError(undefined).kind).toBe('bug');
  });

  it('R7 a marked error passes, with its class and its floor', () => {
    const error = new RetryableError('x', { class: 'throttled', code: '429', notBeforeMs: 5 });
    expect(classifyError(error)).toEqual({
      kind: 'passing',
      summary: { class: 'throttled', code: '429' },
      notBeforeMs: 5,
    });
  });

  it('R12 a refused sign-in waits for credentials', () => {
    expect(classifyError(new SignInRequiredError('unauthorized')).kind).toBe('auth');
  });
});

describe('errors of the local store', () => {
  const domException = (name: string): Error => Object.assign(new Error('made up'), { name });
  it.each(['AbortError', 'InvalidStateError', 'TransactionInactiveError', 'TimeoutError', 'UnknownError'])(
    'R7 %s passes',
    (name) => {
      expect(localStoreError(domException(name))).toMatchObject({ class: 'storage', code: name });
    },
  );

  it('R7 the reason of `indexed_db_went_bad` is the name of a DOMException', () => {
    const error = { status: 500, name: 'indexed_db_went_bad', reason: 'QuotaExceededError' };
    expect(localStoreError(error)).toMatchObject({ class: 'storage', code: 'QuotaExceededError' });
  });

  it('R7 a document that PouchDB refuses does not pass, whatever its status says', () => {
    const error = localStoreError({ status: 500, name: 'doc_validation' });
    expect(error).toBeInstanceOf(DivisibleError);
  });

  it('R7 the words of a message say nothing', () => {
    const one = localStoreError(Object.assign(new Error('timeout after 4000ms'), { name: 'UnknownError' }));
    const other = localStoreError(Object.assign(new Error('patient-4013'), { name: 'UnknownError' }));
    expect(one).toMatchObject({ class: 'storage', code: 'UnknownError' });
    expect(other).toMatchObject({ class: 'storage', code: 'UnknownError' });
    expect((other as RetryableError).message).not.toContain('4013');
  });
});
