import { parseArgs, type ParseArgsConfig } from 'node:util';
import { ServerCommandError } from './errors.js';

/** The options of a command, as `node:util` describes them. */
export type OptionShapes = NonNullable<ParseArgsConfig['options']>;

/** What was given for an option: nothing, a text or switch, or several of one. */
export class Arguments {
  readonly #values: Readonly<Record<string, unknown>>;

  /** @throws ServerCommandError with code `usage`; its message repeats no value, which might be a password */
  constructor(given: readonly string[], options: OptionShapes) {
    try {
      this.#values = parseArgs({ args: [...given], options, strict: true, allowPositionals: false }).values;
    } catch (error) {
      throw new ServerCommandError('usage', inWords(error));
    }
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  texts(name: string): readonly string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
  }

  isSet(name: string): boolean {
    return this.#values[name] === true;
  }

  /** One of the words. @throws ServerCommandError with code `usage` */
  oneOf<Word extends string>(name: string, words: readonly Word[], otherwise: Word): Word {
    const text = this.text(name);
    if (text === undefined) return otherwise;
    const word = words.find((one) => one === text);
    if (word === undefined) throw new ServerCommandError('usage', `--${name} is one of: ${words.join(', ')}.`);
    return word;
  }
}

/**
 * The server's address, without a slash at its end.
 * @throws ServerCommandError with code `usage`, which does not repeat the address: it may hold a password
 */
export function serverAddress(text: string | undefined): string {
  if (text === undefined) {
    throw new ServerCommandError('usage', '--url is missing: the address of CouchDB, such as http://127.0.0.1:5984');
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ServerCommandError('usage', '--url must be an address that begins with http:// or https://.');
  }
  if (url.username !== '' || url.password !== '') {
    throw new ServerCommandError(
      'usage',
      'The address holds a name or password. Others can read the command line: put them into COUCHDB_USER and COUCHDB_PASSWORD.',
    );
  }
  if (url.search !== '' || url.hash !== '') {
    throw new ServerCommandError('usage', '--url must be the address of CouchDB alone, without "?" and "#".');
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function inWords(error: unknown): string {
  const { code, message } = error as { readonly code?: string; readonly message?: string };
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') return 'There is a word too many: all options begin with "--".';
  // Node names the option, without its value.
  const option = /'(--?[\w-]+)/.exec(message ?? '')?.[1] ?? 'an option';
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const isPassword = /^--?(p|pass|password|u|user-?name)$/i.test(option);
    return isPassword
      ? 'No password on the command line, where others can read it: put it into COUCHDB_PASSWORD, or be asked for it.'
      : `Unknown option: ${option.startsWith('--') ? option : option.slice(0, 2)}`;
  }
  return `Something is wrong with the option ${option}: a value is missing, or it takes none.`;
}
