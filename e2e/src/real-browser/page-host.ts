import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtFiles } from '../built-app.js';

/** Serves a page, tells it what it is to do, and hears what it says. */
export class PageHost<Config, Told> {
  /** What a page is told: at `/config`, and with the answer to all that it says. */
  config: Config | undefined;
  readonly #server: Server;
  readonly #listeners = new Set<(told: Told) => void>();

  private constructor(files: ReadonlyMap<string, string>) {
    this.#server = createServer((request, response) => {
      response.setHeader('cache-control', 'no-store');
      if (request.method === 'POST') {
        const parts: Buffer[] = [];
        request.on('data', (part: Buffer) => parts.push(part));
        request.on('end', () => {
          const told = JSON.parse(Buffer.concat(parts).toString()) as Told;
          for (const listener of [...this.#listeners]) listener(told);
          response.end(JSON.stringify(this.config));
        });
        return;
      }
      const code = files.get(request.url ?? '');
      response.setHeader('content-type', code === undefined ? 'text/html' : 'text/javascript');
      if (request.url === '/config') response.end(JSON.stringify(this.config));
      else if (code !== undefined) response.end(code);
      else response.end('<!doctype html><meta charset="utf-8"><script type="module" src="/page.js"></script>');
    });
  }

  /** @param page its file in `src`, such as `kill/page.ts` */
  static async start<Config, Told>(page: string): Promise<PageHost<Config, Told>> {
    const sources = join(packageFolder(), 'src');
    const host = new PageHost<Config, Told>(await builtFiles(sources, join(sources, page)));
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

/** This file runs as it stands (Playwright) and built (`dist`): both lie somewhere below. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}
