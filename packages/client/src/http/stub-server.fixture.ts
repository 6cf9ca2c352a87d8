import type { Clock } from '../model/environment.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { Requests } from './requests.js';
import { ServerDatabase } from './server-database.js';
import { Session } from './session.js';

/** Requests whose `fetch` is handed in: faults that no real server gives on demand. */
export function stubRequests(fetch: typeof globalThis.fetch, clock: Clock = new ManualClock()): Requests {
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
  });
}

/** A database on a server that answers every POST with what `answer` makes of its path and body. */
export function stubServer(answer: (path: string, text: string) => { status?: number; json: unknown }): ServerDatabase {
  const url = 'http://couch.test/records';
  const requests = stubRequests((input, init) => {
    const text = typeof init?.body === 'string' ? init.body : '';
    const { status = 200, json } = answer(String(input as string).slice(url.length), text);
    return Promise.resolve(new Response(JSON.stringify(json), { status }));
  });
  return new ServerDatabase(url, requests);
}
