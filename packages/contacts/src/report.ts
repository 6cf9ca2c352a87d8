import type { Doc } from '@afield/client';
import { ownField } from './lineage.js';

/** Where a report says whom it is about: at its top, and in its `fields`. */
const subjectFields = ['patient_id', 'patient_uuid', 'place_id', 'place_uuid'] as const;

/** Reports are what was filled in; all other documents may be contacts. */
export function isReport(doc: Doc): boolean {
  return ownField(doc, 'type') === 'data_record' || typeof ownField(doc, 'form') === 'string';
}

/** An id or a short code, which old data has as a number, too. */
export function codeOf(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Ids and short codes of those whom a report is about, each once. */
export function subjectsOf(report: Doc): readonly string[] {
  const fields = ownField(report, 'fields');
  const named = [report, fields].flatMap((place) => subjectFields.map((field) => codeOf(ownField(place, field))));
  return [...new Set(named.filter((code) => code !== undefined))];
}

/** What makes a report one about others (content of an `update`). */
export interface SubjectChange {
  readonly patch: Readonly<Record<string, unknown>>;
  /** The fields as they are now. */
  readonly expected: Readonly<Record<string, unknown>>;
}

/**
 * `others` says by which id or short code each one is to be replaced, but for those in `kept`. Undefined: the report names
 * none of them.
 */
export function subjectChange(
  report: Doc,
  others: ReadonlyMap<string, string>,
  kept: ReadonlySet<string>,
): SubjectChange | undefined {
  const fields = ownField(report, 'fields');
  const otherOf = (code: string): string | undefined => (kept.has(code) ? undefined : others.get(code));
  const top = changed(report, otherOf);
  const inner = changed(fields, otherOf);
  const hasInner = Object.keys(inner).length > 0;
  if (!hasInner && Object.keys(top).length === 0) return undefined;
  const seen = Object.fromEntries(Object.keys(top).map((field) => [field, ownField(report, field)]));
  return {
    patch: { ...top, ...(hasInner ? { fields: inner } : {}) },
    expected: { ...seen, ...(hasInner ? { fields } : {}) },
  };
}

function changed(place: unknown, otherOf: (code: string) => string | undefined): Record<string, string> {
  const changes: Record<string, string> = {};
  for (const field of subjectFields) {
    const code = codeOf(ownField(place, field));
    const other = code === undefined ? undefined : otherOf(code);
    if (other !== undefined && other !== code) changes[field] = other;
  }
  return changes;
}
