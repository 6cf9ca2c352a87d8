// @ts-expect-error -- PouchDB's parts come without types
import * as parts from 'pouchdb-errors';
import { describe, expect, it } from 'vitest';
import { DivisibleError, RetryableError } from '../model/errors.js';
import { classifyError, localStoreError } from './classify.js';

type PouchError = Error & { readonly status: number };
const pouch = parts as Readonly<Record<string, PouchError>> & {
  createError(error: PouchError, reason?: string): PouchError;
};

/** Every error that PouchDB has, by the name it is exported under, with what it means. */
const meanings: Readonly<Record<string, string>> = {
  UNAUTHORIZED: 'storage unauthorized',
  MISSING_BULK_DOCS: 'divide unexpected',
  MISSING_DOC: 'storage not_found',
  REV_CONFLICT: 'storage conflict',
  INVALID_ID: 'divide unexpected',
  MISSING_ID: 'divide unexpected',
  RESERVED_ID: 'divide unexpected',
  NOT_OPEN: 'storage precondition_failed',
  UNKNOWN_ERROR: 'storage unknown_error',
  BAD_ARG: 'storage badarg',
  INVALID_REQUEST: 'storage invalid_request',
  QUERY_PARSE_ERROR: 'storage query_parse_error',
  DOC_VALIDATION: 'divide invalid_doc',
  BAD_REQUEST: 'divide unexpected',
  NOT_AN_OBJECT: 'divide unexpected',
  DB_MISSING: 'storage not_found',
  IDB_ERROR: 'storage indexed_db_went_bad',
  WSQ_ERROR: 'storage web_sql_went_bad',
  LDB_ERROR: 'storage levelDB_went_went_bad',
  FORBIDDEN: 'storage forbidden',
  INVALID_REV: 'divide unexpected',
  FILE_EXISTS: 'storage file_exists',
  MISSING_STUB: 'divide missing_stub',
  INVALID_URL: 'storage invalid_url',
};

function meaningOf(error: unknown): string {
  const marked = localStoreError(error);
  if (marked instanceof DivisibleError) return `divide ${marked.code}`;
  if (marked instanceof RetryableError) return `${marked.class} ${marked.code}`;
  throw marked;
}

const isError = (value: unknown): value is PouchError => value instanceof Error;
const words = ['timeout after 4000ms', 'patient-4013', 'conflict', 'Failed to fetch', 'indexed_db_went_bad'];

describe('what PouchDB throws', () => {
  it('R7 every error of pouchdb-errors has its line here', () => {
    const names = Object.keys(parts as object).filter((name) => isError(pouch[name]));
    expect([...names].sort()).toEqual(Object.keys(meanings).sort());
  });

  it.each(Object.entries(meanings))('R7 %s means %s, whatever its words and its status', (name, expected) => {
    const error = pouch[name];
    if (error === undefined) throw new Error(`PouchDB has no ${name}`);
    expect(meaningOf(error)).toBe(expected);
    expect(meaningOf({ name: error.name })).toBe(expected);
    for (const message of words) expect(meaningOf({ name: error.name, message, status: 200 })).toBe(expected);
    // As PouchDB makes them, with the reason in words.
    if (name !== 'IDB_ERROR')
      for (const reason of words) expect(meaningOf(pouch.createError(error, reason))).toBe(expected);
  });

  it('R7 a refused document comes with status 500 and does not pass', () => {
    expect(pouch['DOC_VALIDATION']?.status).toBe(500);
    expect(localStoreError(pouch['DOC_VALIDATION'])).toBeInstanceOf(DivisibleError);
  });

  it('R7 a reason of `indexed_db_went_bad` that is no name says nothing', () => {
    const error = pouch['IDB_ERROR'];
    if (error === undefined) throw new Error('PouchDB has no IDB_ERROR');
    const sentence = 'Failed to open indexedDB, are you in private browsing mode?';
    expect(meaningOf(pouch.createError(error, sentence))).toBe('storage indexed_db_went_bad');
  });
});

describe('what IndexedDB throws', () => {
  it.each([
    'AbortError',
    'InvalidStateError',
    'TransactionInactiveError',
    'TimeoutError',
    'UnknownError',
    'QuotaExceededError',
    'ConstraintError',
    'DataError',
    'ReadOnlyError',
    'VersionError',
    'NotFoundError',
    'InvalidAccessError',
    'NotReadableError',
    'NoSuchNameOfToday',
  ])('R7 %s is the store, which is tried again', (name) => {
    for (const message of ['', ...words]) {
      expect(meaningOf(new DOMException(message, name))).toBe(`storage ${name}`);
      expect(meaningOf({ status: 500, name: 'indexed_db_went_bad', message, reason: name })).toBe(`storage ${name}`);
    }
  });

  it('R7 DataCloneError is the document, found by halving', () => {
    expect(meaningOf(new DOMException('made up', 'DataCloneError'))).toBe('divide invalid_doc');
    expect(meaningOf({ name: 'indexed_db_went_bad', reason: 'DataCloneError' })).toBe('divide invalid_doc');
  });
});

it.each([[undefined], [null], ['timeout'], [500], [{}], [{ status: 503 }], [new TypeError('x')]])(
  'R5 R7 whatever our wrapper of the store caught may pass: %s',
  (thrown) => {
    expect(meaningOf(thrown)).toMatch(/^storage /);
    expect(classifyError(localStoreError(thrown)).kind).toBe('passing');
    expect(classifyError(thrown).kind).toBe('bug');
  },
);
