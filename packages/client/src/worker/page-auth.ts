import type { AuthOptions, Credentials } from '../model/client.js';
import { AfieldError } from '../model/errors.js';
import { ownEndpoint, type Endpoint } from './endpoint.js';
import { PageAsking } from './page-asking.js';

/**
 * For the client of a worker whose credentials only the page knows: asks the page, which answers with
 * `connectClient(worker, { credentials })`. They go over in memory and are kept nowhere else (R12). Waits until a page has
 * connected. Rejects with `AfieldError` (`no_credentials`) when the page has none.
 */
export function pageAuth(endpoint: Endpoint = ownEndpoint()): AuthOptions {
  const page = new PageAsking(endpoint);
  return {
    credentials: async (why) => {
      try {
        // What it is, is checked where it is used.
        return (await page.ask({ of: 'credentials', why })) as Credentials;
      } catch {
        // What the page's own function threw stays there: it may hold more than is good for a log.
        throw new AfieldError(
          'no_credentials',
          'The page gave no credentials: hand `credentials` to connectClient, and let it resolve with some.',
        );
      }
    },
  };
}
