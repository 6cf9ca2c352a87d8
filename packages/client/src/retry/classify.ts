import {
  DivisibleError,
  RetryableError,
  type ErrorClass,
  type ErrorSummary,
  SignInRequiredError,
} from '../model/errors.js';
import { clampFloor } from './ramp.js';
import {
  answerRules,
  errorRules,
  itself,
  networkTable,
  otherAnswers,
  rowTable,
  storeTable,
  type AnswerFacts,
  type AnswerMeaning,
  type AnswerRule,
  type Passing,
  type RowMeaning,
  type WordTable,
} from './table.js';

/*
 * Reads the table. A wrapper of ours (the local store, our requests, `context.db`, `context.fetch`) classes what it
 * caught and throws one of our types; whatever else ends an attempt is a bug of the action (R5).
 */

/** Judges a refused row by its word alone, never by a status: PouchDB invents statuses for rows (R4, R7, R10, R12). */
export function classifyRow(error: string): RowMeaning {
  return meaningOf(rowTable, error);
}

/** What an error that ended an attempt means for the whole batch (R5). */
export type ErrorVerdict =
  | { readonly kind: 'passing'; readonly summary: ErrorSummary; readonly notBeforeMs: number }
  | { readonly kind: 'auth'; readonly summary: ErrorSummary }
  | { readonly kind: 'bug'; readonly summary: ErrorSummary };

/** Judges by type and code, never by the words of a message. What no wrapper of ours marked is a bug (R5). */
export function classifyError(error: unknown): ErrorVerdict {
  for (const { type, kind } of errorRules) {
    if (!(error instanceof type)) continue;
    const summary = { class: error.class, code: error.code };
    if (kind !== 'passing') return { kind, summary };
    return { kind, summary, notBeforeMs: clampFloor('notBeforeMs' in error ? error.notBeforeMs : 0) };
  }
  return { kind: 'bug', summary: { class: 'bug', code: nameOf(error) } };
}

/** The class of a row that makes the batch run again. */
export function classOfRow(meaning: Exclude<RowMeaning, { kind: 'failed' }>): ErrorClass {
  return meaning.kind === 'passing' ? meaning.class : meaning.kind;
}

/** What an answer to a whole request means that did not do what was asked. */
export function classifyAnswer(facts: AnswerFacts): AnswerMeaning {
  const rule = answerRules.find((one) => fits(one, facts) && (one.body === 'any' || one.body === facts.body));
  return withCode(rule?.meaning ?? otherAnswers, String(facts.status));
}

/** Whether an answer means the same whatever its body (R7). */
export function actsByItself(status: number, retryAfter: boolean): boolean {
  return answerRules.some((one) => one.body === 'any' && fits(one, { status, body: 'other', retryAfter }));
}

/** What an answer of any other service means where its status says that it may pass; else the handler judges it. */
export function classifyService(status: number, retryAfter: boolean): Passing | undefined {
  const rule = answerRules.find((one) => one.anyService === true && fits(one, { status, body: 'other', retryAfter }));
  return rule?.meaning.kind === 'passing' ? withCode(rule.meaning, String(status)) : undefined;
}

/** The error to throw for an answer that did not do what was asked. */
export function answerError(
  meaning: AnswerMeaning,
  status: number,
  notBeforeMs: number,
): RetryableError | SignInRequiredError | DivisibleError {
  switch (meaning.kind) {
    case 'auth':
      return new SignInRequiredError(meaning.code);
    case 'divide':
      return new DivisibleError(meaning.code, status);
    case 'passing':
      return passingError(`The server cannot do it now (${meaning.code}). It is tried again.`, meaning, {
        notBeforeMs,
      });
  }
}

/** Marks what a local PouchDB threw. */
export function localStoreError(error: unknown): Error {
  if (error instanceof RetryableError || error instanceof DivisibleError) return error;
  const name = nameOf(error);
  const word = name === 'indexed_db_went_bad' ? (textOf(error, 'reason') ?? name) : name;
  const meaning = meaningOf(storeTable, word);
  if (meaning.kind === 'divide') return new DivisibleError(meaning.code);
  return passingError('The local store did not answer as it should. It is tried again.', meaning, { cause: error });
}

/** Marks what `fetch` threw; `timedOut` when it was our timer that ended the request. */
export function networkError(error: unknown, timedOut: boolean): RetryableError {
  const meaning = meaningOf(networkTable, timedOut ? 'TimeoutError' : nameOf(error));
  return passingError('The network or the server did not answer. It is tried again.', meaning, { cause: error });
}

function passingError(
  message: string,
  { class: errorClass, code }: Passing,
  more: { notBeforeMs?: number; cause?: unknown },
): RetryableError {
  return new RetryableError(message, { class: errorClass, code, ...more });
}

function fits(rule: AnswerRule, { status, retryAfter, error }: AnswerFacts): boolean {
  if (rule.header === 'Retry-After' && !retryAfter) return false;
  if (rule.error !== undefined && rule.error !== error) return false;
  return rule.statuses.some((one) => (typeof one === 'number' ? status === one : status >= one[0] && status <= one[1]));
}

function meaningOf<Meaning extends { readonly kind: string }>(table: WordTable<Meaning>, word: string): Meaning {
  return withCode(table.rules.find(({ words }) => words.includes(word))?.meaning ?? table.others, word);
}

/** The code itself, where a line is for several. */
function withCode<Meaning extends { readonly kind: string }>(meaning: Meaning, code: string): Meaning {
  return 'code' in meaning && meaning.code === itself ? { ...meaning, code } : meaning;
}

/** The name of an error, where it looks like one: anything longer may hold content. */
export function nameOf(error: unknown): string {
  return textOf(error, 'name') ?? 'Error';
}

function textOf(error: unknown, field: string): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const value = (error as Record<string, unknown>)[field];
  return typeof value === 'string' && /^[\w-]{1,64}$/.test(value) ? value : undefined;
}
