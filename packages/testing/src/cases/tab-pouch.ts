import { AsyncLocalStorage } from 'node:async_hooks';
import type { PouchConstructor, PouchLike, PouchReplication } from '@afield/client';
import { isObject } from './json.js';
import { MemoryPouch } from './memory-pouch.js';

/** One call on a local database, as the client made it. */
export interface LocalCall {
  readonly method: string;
  readonly kind: 'read' | 'write' | 'other';
  readonly database: string;
  readonly ids: readonly string[];
  /** The documents of a write with new revisions. */
  readonly docs: readonly object[];
}

/** Who stands between the client and its databases: counts, breaks and cuts off calls. */
export interface LocalCalls {
  /** Makes the call or something else in its place. */
  around<T>(call: LocalCall, run: () => Promise<T>): Promise<T>;
  /** A pass that is not one call (a replication, a feed): counts until it ends. */
  during(ended: PromiseLike<unknown>): void;
  readonly fetch: typeof fetch;
}

const methods = ['allDocs', 'bulkDocs', 'bulkGet', 'get', 'put', 'info', 'close', 'destroy', 'remove', 'post'] as const;
const kinds: Readonly<Record<string, LocalCall['kind']>> = {
  allDocs: 'read',
  bulkGet: 'read',
  get: 'read',
  bulkDocs: 'write',
  put: 'write',
  post: 'write',
  remove: 'write',
};

/** The constructor that one tab's client gets: memory databases whose calls go through `calls`. */
export function tabPouch(calls: LocalCalls): PouchConstructor {
  const inside = new AsyncLocalStorage<true>();
  function open(name: string, options: object = {}): PouchLike {
    if (/^https?:/.test(name)) return new MemoryPouch(name, { fetch: calls.fetch, ...options });
    const real = new MemoryPouch(name, { ...options, adapter: 'memory' });
    watch(real, name, calls, inside);
    return real;
  }
  function replicate(source: PouchLike, target: PouchLike, options?: object): PouchReplication {
    const pass = inside.run(true, () => MemoryPouch.replicate(source, target, options));
    if (!isObject(options) || options['live'] !== true) calls.during(pass);
    return pass;
  }
  // A function that returns an object is a constructor whose `new` gives that object.
  function TabPouch(name: string, options?: object): PouchLike {
    return open(name, options);
  }
  return Object.assign(TabPouch, { replicate }) as unknown as PouchConstructor;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

function watch(real: PouchLike, name: string, calls: LocalCalls, inside: AsyncLocalStorage<true>): void {
  const target = real as unknown as Record<string, Method>;
  for (const method of methods) {
    const original = target[method];
    if (original === undefined) continue;
    target[method] = function watched(this: unknown, ...args: unknown[]): unknown {
      // Calls that PouchDB makes on itself are part of the client's call.
      if (inside.getStore() === true || typeof args.at(-1) === 'function') return original.apply(this, args);
      return calls.around(localCall(method, name, args), () =>
        inside.run(true, () => original.apply(this, args) as Promise<unknown>),
      );
    };
  }
  const changes = target['changes'];
  if (changes === undefined) return;
  target['changes'] = function watched(this: unknown, ...args: unknown[]): unknown {
    const feed = changes.apply(this, args);
    const live = isObject(args[0]) && args[0]['live'] === true;
    if (inside.getStore() !== true && !live) calls.during(feed as PromiseLike<unknown>);
    return feed;
  };
}

function localCall(method: string, database: string, args: readonly unknown[]): LocalCall {
  const first = args[0];
  const given = isObject(args[1]) ? args[1] : {};
  const written = method === 'bulkDocs' ? listOf(first, 'docs') : method === 'put' ? [first] : [];
  const asked =
    method === 'get' ? [first] : isObject(first) ? [...listOf(first, 'keys'), ...listOf(first, 'docs')] : [];
  const ids = [...written, ...asked].map(idOf).filter((id) => id !== undefined);
  return {
    method,
    kind: kinds[method] ?? 'other',
    database,
    ids,
    docs: given['new_edits'] === false ? [] : (written.filter(isObject) as object[]),
  };
}

function listOf(value: unknown, field: string): readonly unknown[] {
  if (Array.isArray(value)) return value as unknown[];
  const list = isObject(value) ? value[field] : undefined;
  return Array.isArray(list) ? (list as unknown[]) : [];
}

function idOf(value: unknown): string | undefined {
  const id = isObject(value) ? (value['_id'] ?? value['id']) : value;
  return typeof id === 'string' ? id : undefined;
}
