import { DevServerError } from './errors.js';
import type { Credentials } from './server/dev-server.js';

/** An answer with its body as JSON. */
export interface JsonResponse {
  readonly status: number;
  readonly body: unknown;
}

/** Splits credentials off an address: `http://user:password@host:5984/` gives `http://host:5984` and the two. */
export function withoutCredentials(address: string): { readonly url: string; readonly credentials?: Credentials } {
  let parsed: URL;
  try {
    parsed = new URL(address);
  } catch {
    // The message must not repeat the address: it may hold a password.
    throw new DevServerError('invalid_argument', 'The address of the server must start with http:// or https://.');
  }
  const { username, password, origin, pathname } = parsed;
  const url = origin + pathname.replace(/\/+$/, '');
  if (username === '') return { url };
  return { url, credentials: { username: decodeURIComponent(username), password: decodeURIComponent(password) } };
}

/** The value of an `Authorization` header for sign-in with each request. */
export function basicAuthorization({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/**
 * Sends a request with a JSON body and reads the JSON answer.
 * @throws DevServerError with code `request_failed` unless the status is 2xx or one of `accepted`
 */
export async function requestJson(
  method: string,
  url: string,
  options: { readonly credentials?: Credentials; readonly body?: unknown; readonly accepted?: readonly number[] } = {},
): Promise<JsonResponse> {
  const { credentials, body, accepted = [] } = options;
  const response = await fetch(url, {
    method,
    headers: {
      accept: 'application/json',
      ...(credentials === undefined ? {} : { authorization: basicAuthorization(credentials) }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok && !accepted.includes(response.status)) {
    throw new DevServerError(
      'request_failed',
      `${method} ${url} was answered ${String(response.status)}: ${text.trim()}`,
    );
  }
  return { status: response.status, body: parsed(text, method, url) };
}

function parsed(text: string, method: string, url: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new DevServerError('request_failed', `${method} ${url} was answered with something that is no JSON.`);
  }
}
