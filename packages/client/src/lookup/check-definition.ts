import type { IndexDefinition } from '../model/lookup.js';

const fields = new Set<string>(['name', 'version', 'keys', 'onError', 'batchSize'] satisfies (keyof IndexDefinition)[]);

/** What is wrong with the indexes that an app hands in, said with the option that it is; undefined when they may be used. */
export function wrongInIndexes(given: unknown): string | undefined {
  if (given === undefined) return undefined;
  if (!Array.isArray(given)) return '`indexes` must be a list';
  const names = new Set<string>();
  for (const [place, definition] of (given as unknown[]).entries()) {
    const which = `indexes.${String(place)}`;
    const wrong = wrongInDefinition(definition, which);
    if (wrong !== undefined) return wrong;
    const { name } = definition as { name: string };
    if (names.has(name)) return `the index "${name}" is listed twice (\`${which}\`): give one of them another \`name\``;
    names.add(name);
  }
  return undefined;
}

function wrongInDefinition(given: unknown, which: string): string | undefined {
  if (typeof given !== 'object' || given === null) return `\`${which}\` must be an object { name, version, keys }`;
  const { name, version, keys, onError, batchSize } = given as Partial<Record<string, unknown>>;
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    return `\`${which}.name\` must be 1 to 64 of A-Z a-z 0-9 _ -`;
  }
  const unknown = Object.keys(given).find((field) => !fields.has(field));
  if (unknown !== undefined) return `the index "${name}" has the unknown field \`${unknown}\``;
  if (!isWhole(version)) return `\`version\` of the index "${name}" must be a whole number, 1 or more`;
  if (typeof keys !== 'function') return `the index "${name}" has no function \`keys\``;
  if (!['park', 'skip', undefined].includes(onError as string | undefined)) {
    return `\`onError\` of the index "${name}" must be "park" or "skip"`;
  }
  if (batchSize !== undefined && !(isWhole(batchSize) && batchSize <= 100)) {
    return `\`batchSize\` of the index "${name}" must be a whole number from 1 to 100`;
  }
  return undefined;
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}
