import { isObject } from '../laws/asked-laws.js';

/** What is wrong with the shape of what `publish` answered; undefined when it is a `PublishAnswer`. */
export function wrongInAnswer(answer: unknown): string | undefined {
  if (!isObject(answer))
    return `\`publish\` answers ${kindOf(answer)}: it must resolve with { accepted, conflicts?, error? }`;
  const { accepted, conflicts, error } = answer as Partial<Record<string, unknown>>;
  if (!Array.isArray(accepted) || !accepted.every((id) => typeof id === 'string')) {
    return '`publish` answers without `accepted`, a list of the ids of events: { accepted, conflicts?, error? }';
  }
  if (conflicts !== undefined && !(Array.isArray(conflicts) && conflicts.every(isConflict))) {
    return '`conflicts` of the answer must be a list of { id, stored }: the id of the event, and what is there under it';
  }
  if (error !== undefined && !(isObject(error) && typeof (error as { code?: unknown }).code === 'string')) {
    return '`error` of the answer must be an object { class?, code, notBeforeMs? }';
  }
  return undefined;
}

function isConflict(row: unknown): boolean {
  return isObject(row) && typeof (row as { id?: unknown }).id === 'string';
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? 'a list' : typeof value;
}
