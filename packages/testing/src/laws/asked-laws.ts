import { AfieldError } from '@afield/client';

/**
 * The laws that are asked for, of all that there are, and no option that is misspelt: either would leave something
 * unchecked in silence. Throws `AfieldError` (`invalid_option`) that names it.
 */
export function askedLaws<Law extends string>(
  what: string,
  options: { readonly laws?: readonly Law[] },
  known: readonly string[],
  all: readonly Law[],
): readonly Law[] {
  if (!isObject(options)) throw wrongOption(what, `the options must be an object { ${known.join(', ')} }`);
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    throw wrongOption(what, `there is no option \`${name}\` (it may have ${known.join(', ')})`);
  }
  const { laws = all } = options;
  if (!Array.isArray(laws)) throw wrongOption(what, '`laws` must be a list');
  if (laws.length === 0)
    throw wrongOption(what, '`laws` is empty: nothing would be checked; leave it out to check all');
  const odd = laws.findIndex((law) => !all.includes(law as Law));
  if (odd >= 0) throw wrongOption(what, `there is no law ${shown(laws[odd])} (there are ${all.join(', ')})`);
  return laws;
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An error that names the function and what is wrong with what it was given. */
export function wrongOption(what: string, why: string): AfieldError {
  return new AfieldError('invalid_option', `${what}: ${why}.`);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : typeof value;
}
