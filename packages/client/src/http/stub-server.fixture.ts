import type { Clock } from '../model/environment.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { Requests } from './requests.js';
import { ServerDatabase } from './server-database.js';
import { Session } from './session.js';

/** Requests whose `fetch` is handed in: faults that no real server gives on demand. */
export function stubRequests(
  fetch: typeof globalThis.fetch,
  clock: Clock = new ManualClock(),
  maxRequestBytes?: number,
): Requests {
  return new Requests({
    fetch,
    session: new Session(
      undefined,
      clock,
      () => undefined,
      () => undefined,
    ),
    clock,
    timeoutMs: 60_000,
    closed: new AbortController().signal,
    server: 'http://couch.test/records',
    maxRequestBytes,
  });
}

type Answer = { status?: number; json: unknown } | 'reset';

/** A database on a server that answers every POST with what `answer` makes of its path and body. */
export function stubServer(answer: (path: string, text: string) => Answer, maxRequestBytes?: number): ServerDatabase {
  const url = 'http://couch.test/records';
  const fetch: typeof globalThis.fetch = (input, init) => {
    const text = typeof init?.body === 'string' ? init.body : '';
    const given = answer(String(input as string).slice(url.length), text);
    if (given === 'reset') return Promise.reject(new TypeError('Failed to fetch'));
    return Promise.resolve(new Response(JSON.stringify(given.json), { status: given.status ?? 200 }));
  };
  return new ServerDatabase(url, stubRequests(fetch, new ManualClock(), maxRequestBytes));
}
