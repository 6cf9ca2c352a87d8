import { randomBytes } from 'node:crypto';
import type { Credentials, ServerUnderTest } from '@afield/devserver';
import { runCommandLine } from './cli.js';

/** What a command said and did. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly said: string;
  /** Each request as `METHOD /path`. */
  readonly requests: readonly string[];
}

/** Runs a command as a process would, signed in as `credentials`. */
export async function run(
  given: readonly string[],
  credentials: Credentials,
  { fetcher = fetch, now = Date.now }: { readonly fetcher?: typeof fetch; readonly now?: () => number } = {},
): Promise<Ran> {
  let out = '';
  let said = '';
  const requests: string[] = [];
  const code = await runCommandLine(given, {
    environment: { COUCHDB_USER: credentials.username, COUCHDB_PASSWORD: credentials.password },
    ask: undefined,
    now,
    out: (text) => {
      out += text;
      return Promise.resolve();
    },
    say: (line) => void (said += `${line}\n`),
    fetch: (input, init) => {
      const { pathname, search } = new URL(input as string);
      requests.push(`${init?.method ?? 'GET'} ${pathname}${search}`);
      return fetcher(input, init);
    },
  });
  return { code, out, said, requests };
}

/** A request as somebody, for what a test prepares or tries. */
export async function sendAs(
  credentials: Credentials,
  method: string,
  url: string,
  body?: unknown,
): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }> {
  const authorization = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
  const answer = await fetch(url, {
    method,
    headers: { authorization, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json = (await answer.json()) as Record<string, unknown>;
  return { status: answer.status, body: json, headers: answer.headers };
}

/** Names that no other test has, and the databases that begin with one of them removed at the end. */
export function ownNames(server: ServerUnderTest): { name(label: string): string; dispose(): Promise<void> } {
  const prefix = `test-${randomBytes(6).toString('hex')}`;
  return {
    name: (label) => `${prefix}-${label}`,
    dispose: async () => {
      const { body } = await sendAs(server.admin, 'GET', `${server.directUrl}/_all_dbs`);
      for (const database of Object.values(body) as string[]) {
        if (database.startsWith(prefix)) await sendAs(server.admin, 'DELETE', `${server.directUrl}/${database}`);
      }
    },
  };
}
