import { z } from 'zod/mini';
import { sameJson } from '../model/same-json.js';

/** Fields of a document, or of a part of it, by their names. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The app's own fields of a document. Those that begin with `_` belong to the database: none of them can be named. Nothing
 * is copied, so that a key of any name stays what it is.
 */
export const ownFields = z.custom<Fields>(isFields, 'must be an object of fields').check((context) => {
  const fields: unknown = context.value;
  if (!isFields(fields)) return;
  for (const field of Object.keys(fields)) {
    if (field.startsWith('_') && field !== '__proto__')
      refuse(context, [field], 'cannot be set: it is the database’s own');
  }
  const path = pathOfProto(fields);
  if (path !== undefined) refuse(context, path, 'cannot be a field of a document');
});

/** The value of a field that the document has itself; names such as `constructor` are plain data. */
export function ownField(doc: Fields, field: string): unknown {
  return Object.prototype.hasOwnProperty.call(doc, field) ? doc[field] : undefined;
}

/** Whether two values of a field mean the same: equal JSON, or none (null, undefined, absent) on both sides (R6). */
export function sameValue(a: unknown, b: unknown): boolean {
  return isNone(a) || isNone(b) ? isNone(a) && isNone(b) : sameJson(a, b);
}

function isNone(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuse(context: z.core.ParsePayload, path: readonly string[], message: string): void {
  context.issues.push({ code: 'custom', path: [...path], message, input: context.value });
}

/** Where a key `__proto__` is: stores drop it silently (S8). Without recursion; a value that contains itself ends too. */
function pathOfProto(root: Fields): readonly string[] | undefined {
  const open: { value: object; path: readonly string[] }[] = [{ value: root, path: [] }];
  const seen = new Set<object>();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, path } = next;
    if (seen.has(value)) continue;
    seen.add(value);
    if (Object.prototype.hasOwnProperty.call(value, '__proto__')) return [...path, '__proto__'];
    for (const [name, inner] of Object.entries(value) as [string, unknown][]) {
      if (typeof inner === 'object' && inner !== null) open.push({ value: inner, path: [...path, name] });
    }
  }
  return undefined;
}
