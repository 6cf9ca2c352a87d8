import { createServer } from 'node:http';
import { startDevServer } from '@afield/devserver';
import type { Forward, Outcome } from './interception.js';
import { seenRequest, type SeenRequest } from './traffic.js';

/** The server that all cases of a run use, one after another, with a proxy in front. */
export interface CaseServer {
  /** The server itself, past the proxy. */
  readonly url: string;
  readonly proxyUrl: string;
  readonly username: string;
  readonly password: string;
  /** The header that signs in as its admin. */
  readonly authorization: string;
  /** From now on this handles what goes through the proxy. */
  intercept(handle: (request: SeenRequest, forward: Forward) => Promise<Outcome>): void;
  close(): Promise<void>;
}

/** Starts (or, with COUCHDB_URL, uses) a server and puts a proxy in front of it. */
export async function startCaseServer(): Promise<CaseServer> {
  const own = await startDevServer();
  const { username, password } = own.admin;
  let handle: ((request: SeenRequest, forward: Forward) => Promise<Outcome>) | undefined;
  const proxy = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const forward: Forward = async (other = body) => {
        const headers = new Headers(incoming.headers as Record<string, string>);
        for (const name of ['host', 'connection', 'content-length', 'accept-encoding']) headers.delete(name);
        const method = incoming.method ?? 'GET';
        const answer = await fetch(own.url + (incoming.url ?? '/'), {
          method,
          headers,
          ...(other === '' || method === 'GET' || method === 'HEAD' ? {} : { body: other }),
        });
        return { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() };
      };
      const seen = seenRequest(incoming.method ?? 'GET', incoming.url ?? '/', body);
      (handle === undefined ? forward() : handle(seen, forward)).then(
        (outcome) => {
          if ('networkError' in outcome) incoming.socket.destroy();
          else {
            const headers = Object.fromEntries(
              Object.entries(outcome.headers).filter(
                ([name]) =>
                  !['content-length', 'transfer-encoding', 'connection', 'keep-alive', 'content-encoding'].includes(
                    name,
                  ),
              ),
            );
            response.writeHead(outcome.status, headers).end(outcome.body);
          }
        },
        (error: unknown) => {
          console.error(error);
          incoming.socket.destroy();
        },
      );
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const port = (proxy.address() as { port: number }).port;
  return {
    url: own.url,
    proxyUrl: `http://127.0.0.1:${String(port)}`,
    username,
    password,
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    intercept: (next) => {
      handle = next;
    },
    close: async () => {
      proxy.close();
      proxy.closeAllConnections();
      await own.close();
    },
  };
}
