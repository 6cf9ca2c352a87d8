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

/** One level of a lineage: a contact by its id, with whatever else is written there. */
export interface Level {
  readonly _id: string;
  readonly [field: string]: unknown;
}

/** The level that a value is; undefined when it names no contact. */
export function levelOf(value: unknown): Level | undefined {
  const id = ownField(value, '_id');
  return typeof id === 'string' && id !== '' ? (value as Level) : undefined;
}

/** The levels of a lineage, nearest first, as far as they name contacts. Walks, so that no depth of nesting breaks it. */
export function* levelsOf(lineage: unknown, most = Infinity): Generator<Level, void> {
  let level = levelOf(lineage);
  for (let depth = 1; level !== undefined && depth <= most; depth += 1) {
    yield level;
    level = levelOf(ownField(level, 'parent'));
  }
}

/** The ids in a lineage, nearest first; a circle of them names some twice. */
export function idsIn(lineage: unknown, most = Infinity): readonly string[] {
  return Array.from(levelsOf(lineage, most), ({ _id }) => _id);
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
