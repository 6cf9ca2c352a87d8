import {
  DivisibleError,
  PlanRefusedError,
  RetryableError,
  SignInRequiredError,
  type ErrorClass,
} from '../model/errors.js';

/*
 * What may pass, and what may not: the whole rule (R4, R5, R7, R11, R12, R13), as data. `classify.ts` reads it, and
 * `docs/classification.md` shows it; a test holds the two together. In every list the first line that fits counts.
 * Nothing here looks at the words of a message.
 */

/** The batch runs again on the ramp (R1). No one knows what was written. */
export interface Passing {
  readonly kind: 'passing';
  readonly class: ErrorClass;
  readonly code: string;
}

/** Surely not written: nothing is tried until credentials come (R12). */
export interface SignIn {
  readonly kind: 'auth';
  readonly code: 'unauthorized' | 'proxy-unauthorized' | 'forbidden';
}

/** The request is halved down to the single row, which then fails with this code (R11). */
export interface Divide {
  readonly kind: 'divide';
  readonly code: DivisibleError['code'];
}

export type AnswerMeaning = Passing | SignIn | Divide;

export type RowMeaning =
  | Passing
  | SignIn
  /** Surely not written: the batch runs again on the refreshed revision (R8). */
  | { readonly kind: 'conflict'; readonly code: 'conflict' }
  /** Refused for good (R4). */
  | { readonly kind: 'failed'; readonly code: 'forbidden' | DivisibleError['code'] };

/** Stands for the number or the word itself, where a line is for several of them. */
export const itself = '(itself)';

/** An answer of the server that did not do what was asked. */
export interface AnswerFacts {
  readonly status: number;
  /** CouchDB's own error (JSON with `error` and `reason`, both text), or anything else. */
  readonly body: 'couchdb-error' | 'other';
  /** CouchDB's word for the error. */
  readonly error?: string | undefined;
  /** Whether it says how long to stay away (R13). */
  readonly retryAfter: boolean;
}

export interface AnswerRule {
  /** Single statuses, and ranges with both ends. */
  readonly statuses: readonly (number | readonly [from: number, to: number])[];
  readonly body: AnswerFacts['body'] | 'any';
  /** Only with this header. */
  readonly header?: 'Retry-After';
  /** Only with this word of CouchDB's. */
  readonly error?: string;
  /** Holds for other services too, whatever their body (`context.fetch`). */
  readonly anyService?: true;
  readonly meaning: AnswerMeaning;
}

/**
 * Answers to a whole request, but for 2xx with JSON in the shape that was asked for: that did it. What no line is for is
 * not CouchDB's.
 */
export const answerRules: readonly AnswerRule[] = [
  { statuses: [401], body: 'any', meaning: { kind: 'auth', code: 'unauthorized' } },
  { statuses: [407], body: 'any', meaning: { kind: 'auth', code: 'proxy-unauthorized' } },
  { statuses: [413], body: 'any', meaning: { kind: 'divide', code: 'too_large' } },
  { statuses: [429], body: 'any', anyService: true, meaning: { kind: 'passing', class: 'throttled', code: itself } },
  {
    statuses: [503],
    body: 'any',
    header: 'Retry-After',
    anyService: true,
    meaning: { kind: 'passing', class: 'throttled', code: itself },
  },
  {
    statuses: [408, 425, [500, 999]],
    body: 'couchdb-error',
    anyService: true,
    meaning: { kind: 'passing', class: 'server', code: itself },
  },
  { statuses: [403], body: 'couchdb-error', meaning: { kind: 'auth', code: 'forbidden' } },
  {
    statuses: [404],
    body: 'couchdb-error',
    meaning: { kind: 'passing', class: 'server', code: 'database-missing' },
  },
  { statuses: [409], body: 'couchdb-error', meaning: { kind: 'passing', class: 'conflict', code: itself } },
  {
    statuses: [412],
    body: 'couchdb-error',
    error: 'missing_stub',
    meaning: { kind: 'divide', code: 'missing_stub' },
  },
  { statuses: [[400, 499]], body: 'couchdb-error', meaning: { kind: 'divide', code: 'unexpected' } },
];

/** HTML of a captive portal, a login page, a redirect, an empty or cut-off body, JSON of something else. */
export const otherAnswers: AnswerMeaning = { kind: 'passing', class: 'network', code: 'not-couchdb' };

/** Meanings of words of CouchDB and PouchDB, or of names of errors. */
export interface WordTable<Meaning> {
  readonly rules: readonly { readonly words: readonly string[]; readonly meaning: Meaning }[];
  /** What every other word means. */
  readonly others: Meaning;
}

/** Errors of IndexedDB that come and go: a connection that died, a transaction that was cut off (R7, B1). */
export const connectionErrors = [
  'AbortError',
  'InvalidStateError',
  'TransactionInactiveError',
  'TimeoutError',
  'UnknownError',
] as const;

/**
 * Rows of a bulk write, by `error` where it is text, else by `name`. The status of a row says nothing: PouchDB invents
 * it. A row `forbidden` is one only after `GET _session` has named us (R12). A row that is left out was not done.
 */
export const rowTable: WordTable<RowMeaning> = {
  rules: [
    { words: ['conflict'], meaning: { kind: 'conflict', code: 'conflict' } },
    { words: ['unauthorized'], meaning: { kind: 'auth', code: 'unauthorized' } },
    {
      words: ['internal_server_error', 'timeout', 'service_unavailable', 'insufficient_storage', 'unknown_error'],
      meaning: { kind: 'passing', class: 'server', code: itself },
    },
    {
      words: [...connectionErrors, 'QuotaExceededError', 'indexed_db_went_bad'],
      meaning: { kind: 'passing', class: 'storage', code: itself },
    },
    { words: ['forbidden'], meaning: { kind: 'failed', code: 'forbidden' } },
    {
      words: ['too_large', 'document_too_large', 'attachment_too_large'],
      meaning: { kind: 'failed', code: 'too_large' },
    },
    { words: ['missing_stub'], meaning: { kind: 'failed', code: 'missing_stub' } },
    { words: ['doc_validation', 'invalid_doc'], meaning: { kind: 'failed', code: 'invalid_doc' } },
    { words: ['illegal_docid', 'invalid_id'], meaning: { kind: 'failed', code: 'invalid_id' } },
  ],
  others: { kind: 'failed', code: 'unexpected' },
};

/**
 * What the local PouchDB throws, by `name`; for `indexed_db_went_bad` by its `reason`, which is the name of a
 * DOMException. Statuses say nothing: a refused document comes with 500. It is a document that PouchDB will never take
 * (found by halving), or else the store, which is tried again for as long as it takes.
 */
export const storeTable: WordTable<Passing | Divide> = {
  rules: [
    { words: ['missing_stub'], meaning: { kind: 'divide', code: 'missing_stub' } },
    { words: ['doc_validation', 'DataCloneError'], meaning: { kind: 'divide', code: 'invalid_doc' } },
    { words: ['illegal_docid'], meaning: { kind: 'divide', code: 'invalid_id' } },
    { words: ['bad_request', 'missing_id'], meaning: { kind: 'divide', code: 'unexpected' } },
    {
      words: [...connectionErrors, 'QuotaExceededError'],
      meaning: { kind: 'passing', class: 'storage', code: itself },
    },
  ],
  others: { kind: 'passing', class: 'storage', code: itself },
};

/** What `fetch` throws, by `name`. When our own timer ended the request it is `TimeoutError`, whatever fetch says. */
export const networkTable: WordTable<Passing> = {
  rules: [{ words: ['TimeoutError'], meaning: { kind: 'passing', class: 'network', code: 'timeout' } }],
  others: { kind: 'passing', class: 'network', code: 'no-answer' },
};

/** What ends an attempt, by type; class and code are the error's own. What is none of these is a bug (R5). */
export const errorRules = [
  { type: SignInRequiredError, kind: 'auth' },
  { type: RetryableError, kind: 'passing' },
  { type: DivisibleError, kind: 'passing' },
  { type: PlanRefusedError, kind: 'bug' },
] as const;
