import { sameJson, type Failure, type Json } from '@afield/client';

/** Levels that a lineage may have; stores break far above it (S8). */
export const deepestLineage = 50;

/** The value of a field that the object has itself; names such as `constructor` are plain data. */
export function ownField(value: unknown, field: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.prototype.hasOwnProperty.call(value, field) ? (value as Record<string, unknown>)[field] : undefined;
}

/** Null, undefined and absent mean the same: none. */
export function isNone(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** Whether two values of a field mean the same: equal JSON, or none on both sides (R6). */
export function sameValue(a: unknown, b: unknown): boolean {
  return isNone(a) || isNone(b) ? isNone(a) && isNone(b) : sameJson(a, b);
}

/** A copy with the field set as given, or without it when the value means none. */
export function withField<D extends object>(doc: D, field: string, value: unknown): D {
  const copy = { ...doc } as D & Record<string, unknown>;
  if (isNone(value)) Reflect.deleteProperty(copy, field);
  else Object.assign(copy, { [field]: value });
  return copy;
}

/**
 * A failure when the lineage is deeper than 50 levels (`too_deep`), or when an id occurs in it twice or is one of
 * `before` (`circular_lineage`). Walks level by level, so that no depth of nesting breaks it.
 */
export function lineageFailure(lineage: unknown, before: readonly string[]): Failure | undefined {
  const seen = new Set<unknown>(before);
  let level = lineage;
  for (let depth = 1; typeof level === 'object' && level !== null; depth += 1) {
    if (depth > deepestLineage) {
      return { code: 'too_deep', reason: `The lineage has more than ${String(deepestLineage)} levels.` };
    }
    const id = ownField(level, '_id');
    if (typeof id === 'string') {
      if (seen.has(id)) return { code: 'circular_lineage', reason: `The lineage comes back to "${id}".` };
      seen.add(id);
    }
    level = ownField(level, 'parent');
  }
  return undefined;
}

/** What an operation says that a field must be now. Undefined: it says nothing; null: there must be none. */
export interface Expected {
  readonly field: string;
  readonly id: string | null | undefined;
  readonly whole: Json | undefined;
}

/** `guard_mismatch` when the field is not what the operation expects (R6). */
export function mismatch(doc: object, expected: Expected): Failure | undefined {
  const value = ownField(doc, expected.field);
  const idFits =
    expected.id === undefined || (expected.id === null ? isNone(value) : ownField(value, '_id') === expected.id);
  const wholeFits = expected.whole === undefined || sameValue(value, expected.whole);
  if (idFits && wholeFits) return undefined;
  return { code: 'guard_mismatch', reason: `The ${expected.field} is not the one that the operation expects.` };
}
