import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { build } from 'vite';

const html = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">';

/** A page and what it loads (its worker, too), as an app's own build would make them; served on a free port. */
export class BuiltApp {
  readonly #server: Server;

  private constructor(files: ReadonlyMap<string, string>) {
    this.#server = createServer((request, response) => {
      const code = files.get(request.url ?? '');
      response.setHeader('cache-control', 'no-store');
      response.setHeader('content-type', code === undefined ? 'text/html' : 'text/javascript');
      response.end(code ?? `${html}<script type="module" src="/page.js"></script>`);
    });
  }

  /** `entry` is the page's module, in `root`. */
  static async start(root: string, entry: string): Promise<BuiltApp> {
    const app = new BuiltApp(await builtFiles(root, entry));
    await new Promise<void>((resolve) => app.#server.listen(0, '127.0.0.1', resolve));
    return app;
  }

  get address(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}/`;
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

/** What a build of the page makes, by paths: `/page.js` and what it loads. */
export async function builtFiles(root: string, entry: string): Promise<ReadonlyMap<string, string>> {
  const result = await build({
    root,
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      target: 'esnext',
      modulePreload: false,
      rollupOptions: { input: entry, output: { entryFileNames: 'page.js' } },
    },
  });
  const files = new Map<string, string>();
  for (const built of Array.isArray(result) ? result : [result]) {
    if (!('output' in built)) throw new Error('vite built nothing.');
    for (const one of built.output) files.set(`/${one.fileName}`, one.type === 'chunk' ? one.code : String(one.source));
  }
  return files;
}
