import type { ProxyRequest } from './request.js';

/** A request that reached the proxy. */
export interface LoggedRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly url: string;
  readonly database: string | undefined;
}

/** The latest requests that are kept one by one; the counts go on. */
const keptEntries = 10_000;

/** Counts requests by `METHOD path`, faults included, preflights not. */
export class RequestLog {
  #counts = new Map<string, number>();
  #entries: LoggedRequest[] = [];

  record({ method, path, url, database }: ProxyRequest): void {
    const key = `${method} ${path}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#entries.push({ method, path, url, database });
    if (this.#entries.length > keptEntries) this.#entries.shift();
  }

  /** How many requests there were, by `METHOD path` (path without query). */
  counts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  /** The requests in their order, the latest 10,000. */
  entries(): readonly LoggedRequest[] {
    return [...this.#entries];
  }

  clear(): void {
    this.#counts = new Map();
    this.#entries = [];
  }
}
