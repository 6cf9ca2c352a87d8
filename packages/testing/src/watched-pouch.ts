import { AsyncLocalStorage } from 'node:async_hooks';
import type { PouchConstructor, PouchLike, PouchReplication } from '@afield/client';
import { isObject } from './cases/json.js';

/** One call on a local database, as the client made it. */
export interface WatchedCall {
  readonly method: string;
  readonly kind: 'read' | 'write' | 'other';
  readonly database: string;
  readonly ids: readonly string[];
  /** The documents of a write. */
  readonly written: readonly object[];
  /** The documents of a write with new revisions. */
  readonly docs: readonly object[];
}

/** Who stands between a client and its databases: counts, breaks and cuts off calls. */
export interface WatchedCalls {
  /** Makes the call, if wanted with other documents, or something else in its place. */
  around<T>(call: WatchedCall, run: (docs?: readonly object[]) => Promise<T>): Promise<T>;
  /** Likewise for the calls that a replication makes by itself. Default: they are made. */
  within?<T>(call: WatchedCall, run: () => Promise<T>): Promise<T>;
  /** A live feed begins. It goes on until it is cancelled. */
  following?(feed: { cancel(): void }): void;
  /** Whether whoever listens to feeds and replications is still there. Default: yes. */
  hears?(): boolean;
  /** The fetch for databases of a server. Default: PouchDB's own. */
  readonly fetch?: typeof fetch;
  /** Options for local databases. */
  readonly options?: object;
}

const methods = [
  'allDocs',
  'bulkDocs',
  'bulkGet',
  'get',
  'put',
  'info',
  'id',
  'close',
  'destroy',
  'remove',
  'post',
] as const;
const kinds: Readonly<Record<string, WatchedCall['kind']>> = {
  allDocs: 'read',
  bulkGet: 'read',
  get: 'read',
  bulkDocs: 'write',
  put: 'write',
  post: 'write',
  remove: 'write',
};

/** What a call is part of, as one wrapper sees it: of another call on the same database, or of a replication. */
interface Part {
  readonly of: 'call' | 'pass';
  readonly wrapper: WatchedCalls;
  readonly outer: Part | undefined;
}

/* One for all wrappers: each AsyncLocalStorage makes every promise of the process slower, for as long as it lives. */
const parts = new AsyncLocalStorage<Part | undefined>();

function partOf(wrapper: WatchedCalls): Part['of'] | undefined {
  let part = parts.getStore();
  while (part !== undefined && part.wrapper !== wrapper) part = part.outer;
  return part?.of;
}

function runAs<T>(of: Part['of'], wrapper: WatchedCalls, run: () => T): T {
  return parts.run({ of, wrapper, outer: parts.getStore() }, run);
}

/** A PouchDB constructor whose calls on local databases go through `calls`. */
export function watchedPouch(PouchDB: PouchConstructor, calls: WatchedCalls): PouchConstructor {
  function open(name: string, options: object = {}): PouchLike {
    if (/^https?:/.test(name)) {
      return new PouchDB(name, calls.fetch === undefined ? options : { fetch: calls.fetch, ...options });
    }
    const real = new PouchDB(name, { ...options, ...calls.options });
    watch(real, name, calls);
    return real;
  }
  function replicate(source: PouchLike, target: PouchLike, options?: object): PouchReplication {
    const pass = runAs('pass', calls, () => PouchDB.replicate(source, target, options));
    listensOutside(pass, calls);
    return pass;
  }
  // A function that returns an object is a constructor whose `new` gives that object.
  function WatchedPouch(name: string, options?: object): PouchLike {
    return open(name, options);
  }
  return Object.assign(WatchedPouch, { replicate }) as unknown as PouchConstructor;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

function watch(real: PouchLike, name: string, calls: WatchedCalls): void {
  const target = real as unknown as Record<string, Method>;
  for (const method of methods) {
    const original = target[method];
    if (original === undefined) continue;
    target[method] = function watched(this: unknown, ...args: unknown[]): unknown {
      const within = partOf(calls);
      // Calls that PouchDB makes on itself are part of the client's call.
      if (within === 'call' || typeof args.at(-1) === 'function') return original.apply(this, args);
      const run = (docs?: readonly object[]): Promise<unknown> =>
        runAs('call', calls, () => original.apply(this, withDocs(args, docs)) as Promise<unknown>);
      const call = watchedCall(method, name, args);
      if (within === undefined) return calls.around(call, run);
      return calls.within === undefined ? original.apply(this, args) : calls.within(call, run);
    };
  }
  const changes = target['changes'];
  if (changes === undefined) return;
  target['changes'] = function watched(this: unknown, ...args: unknown[]): unknown {
    const isLive = isObject(args[0]) && args[0]['live'] === true;
    const isOwn = partOf(calls) === undefined;
    if (isOwn && calls.hears?.() === false) return silentFeed();
    const feed = changes.apply(this, args);
    if (isOwn) listensOutside(feed, calls);
    if (isOwn && isLive) calls.following?.(feed as { cancel(): void });
    if (isOwn && !isLive) answerThrough(feed, watchedCall('changes', name, args), calls);
    return feed;
  };
}

/** What a process gets that is not there any more: nothing is asked, and nothing ever comes. */
function silentFeed(): object {
  const feed = { on: () => feed, cancel: () => undefined, then: () => new Promise(() => undefined) };
  return feed;
}

/** Whoever listens to a feed is no part of the call that made the news: its own calls are met like all others. */
function listensOutside(feed: unknown, calls: WatchedCalls): void {
  const emitter = feed as { on: (event: string, listener: (...news: unknown[]) => void) => unknown };
  const on = emitter.on.bind(emitter);
  emitter.on = (event, listener) =>
    on(event, (...news) => {
      if (calls.hears?.() !== false) parts.run(undefined, () => listener(...news));
    });
}

/** The promise of a feed that ends goes through `calls` as one call; its events are left alone. */
function answerThrough(feed: unknown, call: WatchedCall, calls: WatchedCalls): void {
  const ended = feed as PromiseLike<unknown> & { catch?: unknown };
  const original = ended.then.bind(ended);
  const settled = new Promise((resolve, reject) => void original(resolve, reject));
  settled.catch(() => undefined); // whoever awaits the feed gets the error
  let answer: Promise<unknown> | undefined;
  const through = (): Promise<unknown> => (answer ??= calls.around(call, () => settled));
  ended.then = (fulfilled, rejected) => through().then(fulfilled, rejected);
  ended.catch = (rejected: (error: unknown) => unknown) => through().catch(rejected);
}

function withDocs(args: readonly unknown[], docs: readonly object[] | undefined): unknown[] {
  if (docs === undefined) return [...args];
  const [first, ...rest] = args;
  return [isObject(first) && Array.isArray(first['docs']) ? { ...first, docs } : docs, ...rest];
}

function watchedCall(method: string, database: string, args: readonly unknown[]): WatchedCall {
  const first = args[0];
  const given = isObject(args[1]) ? args[1] : {};
  const written = method === 'bulkDocs' ? listOf(first, 'docs') : method === 'put' ? [first] : [];
  const asked =
    method === 'get' ? [first] : isObject(first) ? [...listOf(first, 'keys'), ...listOf(first, 'docs')] : [];
  const ids = [...written, ...asked].map(idOf).filter((id) => id !== undefined);
  const docs = written.filter(isObject) as object[];
  const keepsRevisions = given['new_edits'] === false || (isObject(first) && first['new_edits'] === false);
  return {
    method,
    kind: kinds[method] ?? 'other',
    database,
    ids,
    written: docs,
    docs: keepsRevisions ? [] : docs,
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
