import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import sirv from 'sirv';
import type { DemoConfig } from '../src/config.js';

export interface PageServer {
  readonly address: string;
  close(): Promise<void>;
}

const folder = fileURLToPath(new URL('../page/', import.meta.url));

/** Serves the built page and its `config.json`. @param port tried first; a free one is taken when it is in use */
export async function servePage(config: DemoConfig, port: number): Promise<PageServer> {
  if (!existsSync(folder))
    throw new Error('The demo is not built: run "pnpm --filter @afield/demo-app run build:page".');
  const files = sirv(folder, { dev: true });
  const body = JSON.stringify(config);
  const server = createServer((request, response) => {
    response.setHeader('cache-control', 'no-store');
    if (request.url?.split('?', 1)[0] === '/config.json') {
      response.setHeader('content-type', 'application/json');
      response.end(body);
      return;
    }
    files(request, response, () => {
      response.statusCode = 404;
      response.end('Not found');
    });
  });
  const taken = await listen(server, port).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return listen(server, 0);
    throw error;
  });
  return {
    address: `http://127.0.0.1:${String(taken)}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
