import { createHash, randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startDevServer, startFaultProxy } from '@afield/devserver';
import type { DemoConfig } from '../src/config.js';
import { couchAt, type Couch } from './couch.js';
import { createDatabases, removeDatabases, usualNames, type DatabaseNames } from './databases.js';
import { servePage } from './page-server.js';

export interface ServeOptions {
  /** A real CouchDB with its credentials; without it an embedded server starts, empty. */
  readonly couchUrl?: string | undefined;
  /** Port of the page that is tried first. Default: a free one. */
  readonly port?: number;
  /** Databases of their own, removed at the end. Default: `afield-demo`, `afield-results` and `afield-events`, which stay. */
  readonly ownDatabases?: boolean;
}

/** A demo that runs: page, fault proxy, server. */
export interface RunningDemo {
  readonly address: string;
  /** The server itself, past the proxy. */
  readonly couch: Couch;
  readonly names: DatabaseNames;
  readonly serverAddress: string;
  /** Outage on: every connection to the server is refused, from now on. */
  setOutage(on: boolean): Promise<void>;
  close(): Promise<void>;
}

/** Files of the sample that ships with the demo. */
export const sampleFolder = fileURLToPath(new URL('../../public/sample/', import.meta.url));

/** Starts all of it on ports that are free. Whoever calls it closes it. */
export async function serveDemo(options: ServeOptions = {}): Promise<RunningDemo> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closers.reverse().splice(0)) await end();
  };
  try {
    return await open(options, closers, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  options: ServeOptions,
  closers: (() => Promise<unknown>)[],
  close: () => Promise<void>,
): Promise<RunningDemo> {
  const couch = await openCouch(options.couchUrl, closers);
  const names = options.ownDatabases === true ? namesOfTheirOwn() : usualNames;
  await createDatabases(couch, names);
  if (options.ownDatabases === true) closers.push(() => removeDatabases(couch, names));
  const proxy = await startFaultProxy({ upstream: couch.address });
  closers.push(() => proxy.close());
  const config: DemoConfig = {
    name: storeName(options, names),
    forgetOthers: options.couchUrl === undefined,
    server: `${proxy.url}/${names.app}`,
    results: `${proxy.url}/${names.results}`,
    events: `${proxy.url}/${names.events}`,
    control: proxy.controlUrl,
    credentials: { username: couch.username, password: couch.password },
    sample: readdirSync(sampleFolder).filter((name) => name.endsWith('.csv')),
  };
  const page = await servePage(config, options.port ?? 0);
  closers.push(() => page.close());
  return {
    address: page.address,
    couch,
    names,
    serverAddress: proxy.url,
    setOutage: (on) => proxy.setOutage(on ? 'refused' : false),
    close,
  };
}

async function openCouch(couchUrl: string | undefined, closers: (() => Promise<unknown>)[]): Promise<Couch> {
  if (couchUrl !== undefined) return couchAt(couchUrl);
  const server = await startDevServer();
  closers.push(() => server.close());
  return { address: server.url, ...server.admin };
}

function namesOfTheirOwn(): DatabaseNames {
  const own = `afield-own-${randomBytes(6).toString('hex')}`;
  return { app: own, results: `${own}-results`, events: `${own}-events` };
}

/** The same server keeps the same store in the browser; an embedded one begins anew, and so does its store. */
function storeName({ couchUrl }: ServeOptions, names: DatabaseNames): string {
  if (couchUrl === undefined) return `afield-demo-${randomBytes(4).toString('hex')}`;
  return `afield-demo-${createHash('sha256').update(`${couchUrl} ${names.app}`).digest('hex').slice(0, 8)}`;
}
