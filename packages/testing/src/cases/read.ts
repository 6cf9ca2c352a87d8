import type * as z from 'zod';
import { CaseFileError } from './case-file-error.js';
import { expandList, expandValue } from './expand.js';
import { isObject, setOwn, type JsonObject } from './json.js';
import { refuseMeaningless } from './meaningless.js';
import { caseFile, type CaseFile, type Expectation, type Fault, type Step } from './schema.js';

/** One case, or one variant of it, ready to be run. */
export interface Case {
  /** `C09`, or `C09/edge-404`. */
  readonly name: string;
  readonly title: string;
  readonly target: CaseFile['target'];
  readonly config: NonNullable<CaseFile['config']>;
  readonly seedDocs: readonly JsonObject[];
  readonly serverDocs: readonly JsonObject[];
  readonly serverUsers: readonly JsonObject[];
  readonly operations: CaseFile['operations'];
  readonly steps: readonly Step[];
  readonly faults: readonly Fault[];
  readonly expect: Expectation;
}

const defaultSteps: readonly Step[] = [{ do: 'enqueue-all' }, { do: 'start' }, { do: 'settle' }];
const wordsOfExpectedDocs = ['$deleted', '$absent', '$present'];
const wordsOfEdits = ['$edit', '$delete', '$count'];
const listsOfExpectedDocs = ['docs', 'server_docs', 'server_users'];

/** Reads the text of a case file: the case and its variants. Throws `CaseFileError` for any word that is unknown. */
export function readCases(text: string, file: string): readonly Case[] {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw new CaseFileError(file, [], `no JSON: ${error instanceof Error ? error.message : 'unreadable'}`);
  }
  if (!isObject(raw)) throw new CaseFileError(file, [], 'must be an object');
  const result = caseFile.safeParse(expanded(raw, file));
  if (!result.success) throw refusal(file, result.error.issues);
  refuseMeaningless(result.data, file);
  return withVariants(result.data);
}

function withVariants(read: CaseFile): readonly Case[] {
  const main: Case = {
    name: read.id,
    title: read.title,
    target: read.target,
    config: read.config ?? {},
    seedDocs: read.seed_docs,
    serverDocs: read.server_docs,
    serverUsers: read.server_users ?? [],
    operations: read.operations,
    steps: read.steps ?? defaultSteps,
    faults: read.faults ?? [],
    expect: read.expect,
  };
  const variants = (read.variants ?? []).map((variant) => ({
    ...main,
    name: `${read.id}/${variant.name}`,
    serverDocs: variant.server_docs ?? main.serverDocs,
    faults: [...(variant.faults ?? main.faults), ...(variant.add_faults ?? [])],
    expect: { ...main.expect, ...variant.expect },
  }));
  return [main, ...variants];
}

function expanded(raw: JsonObject, file: string): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(raw)) {
    setOwn(result, key, expandedField(key, value, file, [key]));
  }
  return result;
}

function expandedField(key: string, value: unknown, file: string, place: (string | number)[]): unknown {
  if (key === 'seed_docs' || key === 'server_docs' || key === 'server_users') {
    return expandList(value, 'doc', file, place);
  }
  if (key === 'operations') return expandList(value, 'op', file, place);
  if (key === 'steps' || key === 'faults' || key === 'add_faults') {
    return expandValue(value, file, place, wordsOfEdits);
  }
  if (key === 'variants' && Array.isArray(value)) {
    return value.map((variant: unknown, index) =>
      isObject(variant)
        ? Object.fromEntries(
            Object.entries(variant).map(([name, inner]) => [
              name,
              expandedField(name, inner, file, [...place, index, name]),
            ]),
          )
        : variant,
    );
  }
  if (key === 'expect' && isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [
        name,
        listsOfExpectedDocs.includes(name) ? expandedExpectation(inner, file, [...place, name]) : inner,
      ]),
    );
  }
  return value;
}

function expandedExpectation(docs: unknown, file: string, place: (string | number)[]): unknown {
  if (!Array.isArray(docs)) return docs;
  return docs.flatMap((doc: unknown, index) =>
    isObject(doc) && Object.hasOwn(doc, '$repeat')
      ? expandList([doc], 'doc', file, [...place, index])
      : [expandValue(doc, file, [...place, index], wordsOfExpectedDocs)],
  );
}

function refusal(file: string, issues: readonly z.core.$ZodIssue[]): CaseFileError {
  const issue = issues[0];
  if (issue === undefined) return new CaseFileError(file, [], 'not a case');
  const place = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code === 'unrecognized_keys') {
    const word = issue.keys[0] ?? '';
    return new CaseFileError(file, [...place, word], `unknown word "${word}"`);
  }
  return new CaseFileError(file, place, issue.message);
}
