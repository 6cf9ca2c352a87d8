import { DevServerError } from './errors.js';
import { startFaultProxy, type FaultProxy } from './proxy/fault-proxy.js';
import { requestJson, withoutCredentials } from './request-json.js';
import { startDevServer, type Credentials } from './server/dev-server.js';

/** What `GET /` says of a server. */
export interface ServerSoftware {
  readonly couchdb: string;
  readonly version: string;
  readonly vendor?: { readonly name: string; readonly version?: string };
}

/** A server for tests with a proxy in front. */
export interface ServerUnderTest {
  /** Address through the proxy: what a client under test gets. Without credentials. */
  readonly url: string;
  /** Address of the server itself: what a test prepares and checks with. Without credentials. */
  readonly directUrl: string;
  readonly proxy: FaultProxy;
  readonly admin: Credentials;
  readonly software: ServerSoftware;
  /** Whether it is the embedded server and no real CouchDB. */
  readonly isEmbedded: boolean;
  /** Ends the proxy, and the server if it was started here. */
  close(): Promise<void>;
}

/**
 * The server that tests run against: the CouchDB at `COUCHDB_URL` (an address with the admin's credentials, such as
 * `http://admin:password@127.0.0.1:5984`) if that variable is set, else an embedded one of its own.
 * @throws DevServerError with code `invalid_argument` (no credentials in the address), `request_failed`, `start_failed`
 */
export async function serverUnderTest(environment: NodeJS.ProcessEnv = process.env): Promise<ServerUnderTest> {
  const address = environment['COUCHDB_URL'];
  const server = address === undefined || address === '' ? await startDevServer() : realServer(address);
  try {
    const { body } = await requestJson('GET', `${server.url}/`, { credentials: server.admin });
    const proxy = await startFaultProxy({ upstream: server.url });
    return {
      url: proxy.url,
      directUrl: server.url,
      proxy,
      admin: server.admin,
      software: body as ServerSoftware,
      isEmbedded: 'problems' in server,
      close: async () => {
        await proxy.close();
        await server.close();
      },
    };
  } catch (error) {
    await server.close();
    throw error;
  }
}

function realServer(address: string): { url: string; admin: Credentials; close(): Promise<void> } {
  const { url, credentials } = withoutCredentials(address);
  if (credentials === undefined) {
    throw new DevServerError('invalid_argument', 'COUCHDB_URL needs the name and password of an admin in it.');
  }
  return { url, admin: credentials, close: () => Promise.resolve() };
}
