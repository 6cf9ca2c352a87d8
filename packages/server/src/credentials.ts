import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { Credentials } from './couch.js';
import { ServerCommandError } from './errors.js';

/** Asks a person. Answers what was typed; `hidden` shows nothing of it. */
export type Ask = (question: string, hidden: boolean) => Promise<string>;

/**
 * Who signs in: `COUCHDB_USER` and `COUCHDB_PASSWORD` of the environment; what is missing there is asked for.
 *
 * @param ask undefined where nobody can be asked (no terminal)
 * @throws ServerCommandError with code `usage` when something is missing and nobody can be asked, or nothing was typed
 */
export async function credentialsFrom(
  environment: Readonly<Record<string, string | undefined>>,
  ask: Ask | undefined,
): Promise<Credentials> {
  const given = async (variable: string, question: string, hidden: boolean): Promise<string> => {
    const value = environment[variable] ?? '';
    if (value !== '') return value;
    const typed = (await ask?.(question, hidden)) ?? '';
    if (typed !== '') return typed;
    throw new ServerCommandError('usage', `${variable} is not set: put it into the environment, or run in a terminal.`);
  };
  const username = await given('COUCHDB_USER', 'User of CouchDB: ', false);
  if (username.includes(':')) {
    throw new ServerCommandError('usage', 'A user name with ":" cannot sign in this way (HTTP basic).');
  }
  return { username, password: await given('COUCHDB_PASSWORD', 'Password (nothing is shown): ', true) };
}

/** Asks on the terminal; undefined when there is none. Questions go to stderr: stdout is for what a command brings. */
export function terminalAsk(): Ask | undefined {
  if (!process.stdin.isTTY) return undefined;
  return (question, hidden) =>
    new Promise((resolve, reject) => {
      const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
      if (hidden) process.stderr.write(question);
      const line = createInterface({
        input: process.stdin,
        output: hidden ? nowhere : process.stderr,
        terminal: true,
        historySize: 0,
      });
      let answer: string | undefined;
      line.on('close', () => {
        if (hidden) process.stderr.write('\n');
        if (answer === undefined) reject(new ServerCommandError('usage', 'Stopped: nothing was typed.'));
        else resolve(answer);
      });
      line.on('SIGINT', () => line.close());
      line.question(hidden ? '' : question, (typed) => {
        answer = typed;
        line.close();
      });
    });
}
