import type { OperationInput } from '@afield/client';
import { z } from 'zod/mini';

/** One field of an operation, as a person edits it. */
export interface Field {
  readonly name: string;
  /** Text, or JSON; empty: the operation has no such field. */
  readonly text: string;
}

/** A failed operation as the client shows it: its id as it came, and its own content. */
const FailedContent = z.object({ id: z.optional(z.unknown()), content: z.optional(z.record(z.string(), z.unknown())) });

/** Fields that an action may have beside those that are there, so that they can be filled in. */
const fieldsOfActions: Readonly<Record<string, readonly string[]>> = {
  'set-parent': ['parent', 'current_parent_id'],
  'set-contact': ['contact', 'current_contact_id'],
};

/** The fields of a failed operation, the id first; undefined when it has none that could be edited. */
export function fieldsOf(action: string | undefined, operation: unknown): readonly Field[] | undefined {
  const parsed = FailedContent.safeParse(operation);
  if (action === undefined || !parsed.success) return undefined;
  const { id, content = {} } = parsed.data;
  const known = Object.prototype.hasOwnProperty.call(fieldsOfActions, action) ? (fieldsOfActions[action] ?? []) : [];
  const names = [...new Set([...Object.keys(content), ...known])];
  return [
    { name: 'id', text: typeof id === 'string' ? id : textOf(id) },
    ...names.map((name) => ({ name, text: textOf(content[name]) })),
  ];
}

/** What the person wrote, as an operation; `problems` names the fields that cannot be read. */
export function operationOf(
  fields: readonly Field[],
): { readonly operation: OperationInput } | { readonly problems: ReadonlyMap<string, string> } {
  const operation: [string, unknown][] = [];
  const problems = new Map<string, string>();
  for (const { name, text } of fields) {
    if (text.trim() === '') continue;
    // An id is a text, also one that looks like a number.
    if (name === 'id') operation.push([name, text.trim()]);
    else if (isBrokenJson(text)) problems.set(name, 'This is not JSON: look for a missing quote, comma or bracket.');
    else operation.push([name, valueOf(text)]);
  }
  return problems.size > 0 ? { problems } : { operation: Object.fromEntries(operation) };
}

/** A text stands as it is, unless it would be read as something else. */
function textOf(value: unknown): string {
  if (value === undefined) return '';
  const isPlain = typeof value === 'string' && value.trim() === value && value !== '';
  return isPlain && !isBrokenJson(value) && valueOf(value) === value ? value : JSON.stringify(value, null, 2);
}

function valueOf(text: string): unknown {
  const json = jsonOf(text);
  return json === undefined ? text.trim() : json.value;
}

/** What looks like JSON and is none is a slip, not a text. */
function isBrokenJson(text: string): boolean {
  return /^\s*["[{]/.test(text) && jsonOf(text) === undefined;
}

function jsonOf(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined; // a text
  }
}
