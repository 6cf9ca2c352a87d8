import type { Client } from '../model/client.js';
import type { Locks } from '../model/environment.js';
import { greet, hearGreetings, ownEndpoint, type Endpoint } from './endpoint.js';
import { lifeOf } from './life.js';
import { wireVersion } from './messages.js';
import { ServedPage } from './served-page.js';

/**
 * In the worker: lets the pages that call `connectClient` use this client. `endpoint` is the worker itself (default), or, in
 * a SharedWorker, the port of each page that connects. Answers with a function that ends it; the client is not closed by
 * that. A page that ends or crashes is forgotten, where the engine has Web Locks or tells that a port was closed.
 */
export function serveClient(
  client: Client,
  endpoint: Endpoint = ownEndpoint(),
  options: { /** Default: the engine's. */ readonly locks?: Locks } = {},
): () => void {
  const life = lifeOf(options.locks);
  const pages = new Set<ServedPage>();
  const ended = new AbortController();
  const sayHere = async (): Promise<void> => {
    await life.hold();
    if (!ended.signal.aborted) greet(endpoint, { afield: 'here', v: wireVersion, life: life.tab });
  };
  const unhear = hearGreetings(endpoint, (said, port) => {
    if (said.afield === 'knock') void sayHere();
    if (said.afield !== 'connect' || port === undefined) return;
    const page: ServedPage = new ServedPage(client, port, () => pages.delete(page));
    pages.add(page);
    life.whenFree(said.life, page.ended).then(
      (isGone) => {
        if (isGone) page.end();
      },
      () => undefined, // the page has ended before
    );
  });
  void sayHere();
  return () => {
    ended.abort();
    unhear();
    life.release();
    for (const page of [...pages]) page.end();
  };
}
