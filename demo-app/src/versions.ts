import type { QuarantineEntry } from '@afield/client';
import { z } from 'zod/mini';

/** One field of two versions, side by side; undefined: that version does not have it. */
export interface VersionRow {
  readonly field: string;
  readonly first: string | undefined;
  readonly second: string | undefined;
}

export interface Versions {
  readonly different: readonly VersionRow[];
  readonly same: readonly VersionRow[];
  /** Whether the first version is still stored. */
  readonly hasFirst: boolean;
}

const Fields = z.record(z.string(), z.unknown());
const OperationVersion = z.object({
  action: z.optional(z.string()),
  target: z.optional(z.string()),
  id: z.optional(z.unknown()),
  content: z.optional(z.unknown()),
});
const CreateVersion = z.object({ content: z.object({ doc: Fields }) });
const EventVersion = z.object({ event: Fields });

/** Both versions of a conflict, field by field, those that differ apart from those that do not. */
export function versionsOf({ kind, first, second }: Pick<QuarantineEntry, 'kind' | 'first' | 'second'>): Versions {
  const [firstFields, secondFields] = [fieldsOf(kind, first, 'first'), fieldsOf(kind, second, 'second')];
  const names = [...new Set([...firstFields.keys(), ...secondFields.keys()])];
  const rows = names.map((field) => ({ field, first: firstFields.get(field), second: secondFields.get(field) }));
  return {
    different: rows.filter((row) => row.first !== row.second),
    same: rows.filter((row) => row.first === row.second),
    hasFirst: first !== undefined,
  };
}

/** The record that a conflict is about; undefined where it is about a whole request. */
export function recordOf({ kind, second }: Pick<QuarantineEntry, 'kind' | 'second'>): string | undefined {
  const event = EventVersion.safeParse(second).data?.event;
  const found = kind === 'event' ? fieldOf(event, 'documentId') : fieldOf(second, 'id');
  return typeof found === 'string' ? found : undefined;
}

/** By path with dots, each value as text. A document's own fields are compared, not how the operation wraps them. */
function fieldsOf(kind: QuarantineEntry['kind'], version: unknown, which: 'first' | 'second'): Map<string, string> {
  if (kind === 'create') {
    const doc = which === 'first' ? Fields.safeParse(version).data : CreateVersion.safeParse(version).data?.content.doc;
    return flat(doc === undefined ? version : Object.fromEntries(Object.entries(doc).filter(isOwn)));
  }
  if (kind === 'event') {
    const event = which === 'first' ? version : (EventVersion.safeParse(version).data?.event ?? version);
    return flat(event);
  }
  const operation = kind === 'operation' ? OperationVersion.safeParse(version).data : undefined;
  if (operation === undefined) return flat(version);
  const { action, target, id, content } = operation;
  return new Map([
    ...flat({ 'the action': action, 'the target': target, 'the record': id }, asTheyAre),
    ...flat(content),
  ]);
}

function isOwn([field]: [string, unknown]): boolean {
  return !field.startsWith('_');
}

function fieldOf(version: unknown, field: string): unknown {
  return Fields.safeParse(version).data?.[field];
}

/** What stands between the names of a path is quoted in a name, and so is a space: our own names have one. */
function quoted(name: string): string {
  return name === '' || /[.\s"]/.test(name) ? JSON.stringify(name) : name;
}

function asTheyAre(name: string): string {
  return name;
}

function flat(value: unknown, named = quoted, path = '', into = new Map<string, string>()): Map<string, string> {
  if (value === undefined) return into;
  const parts = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (parts.length === 0) into.set(path, textOf(value));
  for (const [name, part] of parts) flat(part, named, path === '' ? named(name) : `${path}.${named(name)}`, into);
  return into;
}

/** A text stands as it is, unless it could be taken for another value. */
function textOf(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  return isJson(value) || value.trim() !== value || value === '' ? JSON.stringify(value) : value;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
