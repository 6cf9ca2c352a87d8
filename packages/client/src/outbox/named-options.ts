import { AfieldError } from '../model/errors.js';

/** What a function of the outbox takes: its name, its options, and how it says what is wrong with them. */
export interface Taking {
  readonly what: string;
  readonly known: readonly string[];
}

/** Checks that options are an object without a misspelt field. Throws `AfieldError` (`invalid_option`). */
export function checkNamed({ what, known }: Taking, options: unknown): void {
  const all = known.join(', ');
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw wrongOption(what, `the options must be an object { ${all} }`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw wrongOption(what, `there is no option \`${name}\` (it may have ${all})`);
  }
}

/** An error that names the function and the option. */
export function wrongOption(what: string, why: string): AfieldError {
  return new AfieldError('invalid_option', `${what}: ${why}.`);
}
