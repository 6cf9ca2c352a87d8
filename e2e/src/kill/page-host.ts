import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import type { Config, Told } from './work.js';

/** Serves the page, and hears what it says. */
export class PageHost {
  /** What the next page is told; set before it is opened. */
  config: Config | undefined;
  readonly #server: Server;
  readonly #listeners = new Set<(told: Told) => void>();

  private constructor(code: string) {
    this.#server = createServer((request, response) => {
      response.setHeader('cache-control', 'no-store');
      if (request.method === 'POST') {
        const parts: Buffer[] = [];
        request.on('data', (part: Buffer) => parts.push(part));
        request.on('end', () => {
          response.end('{}');
          const told = JSON.parse(Buffer.concat(parts).toString()) as Told;
          for (const listener of [...this.#listeners]) listener(told);
        });
        return;
      }
      const isCode = request.url === '/page.js';
      response.setHeader('content-type', isCode ? 'text/javascript' : 'text/html');
      if (request.url === '/config') response.end(JSON.stringify(this.config));
      else if (isCode) response.end(code);
      else response.end('<!doctype html><meta charset="utf-8"><script type="module" src="/page.js"></script>');
    });
  }

  static async start(): Promise<PageHost> {
    const host = new PageHost(await pageCode());
    await new Promise<void>((resolve) => host.#server.listen(0, '127.0.0.1', resolve));
    return host;
  }

  get address(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}/`;
  }

  listen(listener: (told: Told) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve();
      });
      this.#server.closeAllConnections();
    });
  }
}

/** The page with the client, in one file, as an app's own build would make it. */
async function pageCode(): Promise<string> {
  const entry = fileURLToPath(new URL('../../../src/kill/page.ts', import.meta.url));
  const result = await build({
    configFile: false,
    logLevel: 'silent',
    define: { global: 'globalThis' },
    build: { write: false, target: 'esnext', lib: { entry, formats: ['es'], fileName: 'page' } },
  });
  const [output] = Array.isArray(result) ? result : [result];
  if (output === undefined || !('output' in output)) throw new Error('vite built nothing.');
  return output.output[0].code;
}
