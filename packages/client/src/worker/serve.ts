import type { Client } from '../model/client.js';
import type { Locks } from '../model/environment.js';
import { AfieldError } from '../model/errors.js';
import { assertEndpoint, greet, hearGreetings, ownEndpoint, type Endpoint } from './endpoint.js';
import { lifeOf } from './life.js';
import { wireVersion } from './messages.js';
import { ServedPage } from './served-page.js';

/** Two that hear one page would both do what it calls. */
const served = new WeakSet<Endpoint>();

/**
 * In the worker: lets the pages that call `connectClient` use this client. `endpoint` is the worker itself (default), or, in
 * a SharedWorker, the port of each page that connects. Answers with a function that ends it; the client is not closed by
 * that. A page that ends or crashes is forgotten, where the engine has Web Locks or tells that a port was closed.
 * Throws `AfieldError`: `already_served` while another call serves this endpoint, `invalid_option` for what is none.
 */
export function serveClient(
  client: Client,
  endpoint: Endpoint = ownEndpoint(),
  options: { /** Default: the engine's. */ readonly locks?: Locks } = {},
): () => void {
  assertEndpoint(endpoint, 'serveClient: in a SharedWorker hand in the port of each page: serveClient(client, port).');
  if (served.has(endpoint)) {
    throw new AfieldError(
      'already_served',
      'serveClient: this worker serves a client already. Make a worker for each client.',
    );
  }
  served.add(endpoint);
  let life = lifeOf(options.locks);
  /** Pages that have knocked and not connected yet: they may rest on `life`. */
  let knocked = 0;
  const pages = new Set<ServedPage>();
  const ended = new AbortController();
  const sayHere = async (): Promise<void> => {
    const { tab } = life;
    await life.hold();
    if (!ended.signal.aborted) greet(endpoint, { afield: 'here', v: wireVersion, life: tab });
  };
  // A SharedWorker outlives its pages: it keeps no lock for those that are gone.
  const gone = (page: ServedPage): void => {
    pages.delete(page);
    if (pages.size > 0 || knocked > 0) return;
    life.release();
    life = lifeOf(options.locks);
  };
  const unhear = hearGreetings(endpoint, (said, port) => {
    if (said.afield === 'knock') {
      knocked++;
      void sayHere();
    }
    if (said.afield !== 'connect' || port === undefined) return;
    knocked = Math.max(0, knocked - 1);
    const page: ServedPage = new ServedPage(client, port, () => {
      gone(page);
    });
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
    if (ended.signal.aborted) return;
    ended.abort();
    served.delete(endpoint);
    unhear();
    life.release();
    for (const page of [...pages]) page.end();
  };
}
