import { z } from 'zod/mini';
import type { RedactedOperation } from '../model/client.js';
import { failureCode } from '../model/failure.js';
import type { StoredFailure } from '../queue/stored.js';
import { firstNotJson } from '../queue/request.js';
import type { FailureRow } from './result-documents.js';

/** Longer texts are cut: they say no more, and a document has a limit. */
const longestReason = 2000;
const longestName = 1000;
const mostFields = 50;
const longestField = 100;

/** What of a failure may leave the device. */
export interface Disclosure {
  /** The database is of this user alone: reasons and content go there too. */
  readonly content: boolean;
  readonly redact?: ((operation: RedactedOperation) => unknown) | undefined;
  /** Told when `redact` throws, or answers with something that is no JSON. */
  readonly redactFailed: () => void;
}

const storedContent = z.object({ content: z.optional(z.unknown()) });

/** What is sent of a failure. In a shared database ids, codes and names of fields: no reason, no content (S1). */
export function failureRowOf(failure: StoredFailure, disclosure: Disclosure): FailureRow {
  const content = contentOf(failure);
  const row: FailureRow = {
    index: failure.index,
    id: failure.id?.slice(0, longestName) ?? null,
    action: failure.action,
    code: safeCode(failure.code),
    fields: fieldsOf(content),
    mayHaveBeenApplied: failure.mayHaveBeenApplied,
    at: failure.at,
    ...(failure.refused === null ? {} : { refused: true }),
    ...(failure.app === undefined ? {} : { app: failure.app.slice(0, longestName) }),
    ...(failure.resolution === undefined ? {} : { resolution: failure.resolution }),
  };
  if (!disclosure.content) return row;
  return { ...row, reason: failure.reason.slice(0, longestReason), ...disclosed(failure, content, disclosure) };
}

/** A code as it may be sent: a fixed word. Whatever else an app has put there may be content. */
export function safeCode(code: string): string {
  return failureCode.test(code) ? code : 'other';
}

function contentOf({ operation }: StoredFailure): unknown {
  const parsed = storedContent.safeParse(operation === null ? {} : JSON.parse(operation));
  return parsed.success ? parsed.data.content : undefined;
}

function fieldsOf(content: unknown): string[] {
  if (typeof content !== 'object' || content === null) return [];
  return Object.keys(content)
    .slice(0, mostFields)
    .map((name) => name.slice(0, longestField));
}

function disclosed(
  { action, id }: StoredFailure,
  content: unknown,
  { redact, redactFailed }: Disclosure,
): Pick<FailureRow, 'content' | 'withheld'> {
  if (content === undefined) return {};
  if (redact === undefined) return { content };
  try {
    const left = redact({ action: action ?? undefined, id: id ?? undefined, content });
    if (left === undefined) return {};
    // A promise, a function, or what contains itself: nothing of it can be known to be what the app meant.
    if (firstNotJson(left) === undefined) return { content: left };
  } catch {
    // As what is no JSON: without an answer of the app nothing is sent.
  }
  redactFailed();
  return { withheld: 'redact_failed' };
}
