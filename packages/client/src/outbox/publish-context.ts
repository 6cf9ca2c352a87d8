import { Requests } from '../http/requests.js';
import { ServerDatabase } from '../http/server-database.js';
import { Session } from '../http/session.js';
import type { AuthOptions } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import type { PublishContext } from '../model/event.js';

/** What a publisher is given for one call. A database that is closed to the user stops nothing but its own events. */
export function publishContext(requests: Requests, signal: AbortSignal, attempt: number): PublishContext {
  return {
    fetch: (input, init) => requests.handlerFetch(input, init),
    database: (url) => new ServerDatabase(url, requests, 'retry'),
    signal,
    attempt,
  };
}

export interface StandalonePublishOptions {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  /** Address of the client's database: its server gets the credentials. */
  readonly server?: string;
  readonly auth?: AuthOptions;
  /** Default: 60. */
  readonly requestTimeoutS?: number;
  readonly signal?: AbortSignal;
  /** Default: 1. */
  readonly attempt?: number;
}

/** A context for a publisher without a client: for tests of publishers, and to publish from elsewhere. */
export function standalonePublishContext(options: StandalonePublishOptions): PublishContext {
  const { fetch, clock, server, auth, requestTimeoutS = 60, attempt = 1 } = options;
  const signal = options.signal ?? new AbortController().signal;
  const ignore = (): void => undefined;
  const session = new Session(auth, clock, ignore, ignore);
  const requests = new Requests({ fetch, session, clock, timeoutMs: requestTimeoutS * 1000, closed: signal, server });
  return publishContext(requests, signal, attempt);
}
