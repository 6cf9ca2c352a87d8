import { ExternalReplication } from './external-replication.js';
import type { Requests } from './http/requests.js';
import { ServerDatabase } from './http/server-database.js';
import type { ClientOptions } from './model/client.js';
import { replicationMode } from './options.js';
import type { DocumentHashes } from './queue/document-hashes.js';
import type { Failures } from './queue/failures.js';
import type { Replicating } from './replicating.js';
import { Replication } from './replication.js';
import { LocalDatabase } from './store/local-database.js';
import type { OutgoingParts } from './sync/outgoing.js';
import type { Refusals } from './sync/refusals.js';

/** The replication that the app has asked for; undefined when there is none. */
export function replicationOf(
  options: ClientOptions,
  parts: OutgoingParts & {
    requests: Requests;
    hashes: DocumentHashes;
    failures: Failures;
    refusals: Refusals;
    newId: () => string;
    /** A pull has come to its end: documents may have come, also with one that failed. */
    pulled: () => void;
  },
): Replicating | undefined {
  const { server: url, PouchDB } = options;
  if (url === undefined) return undefined;
  const watched = { ...parts, inactivityMs: (options.inactivityS ?? 300) * 1000 };
  switch (replicationMode(options)) {
    case 'off':
      return undefined;
    case 'external':
      return new ExternalReplication({ ...watched, server: new ServerDatabase(url, parts.requests) });
    case 'managed':
      return new Replication({
        ...watched,
        url,
        PouchDB,
        pull: options.pull,
        outOfSight: options.outOfSight,
        // Closed with the other handle of this name: they share their connection.
        forgetful: new LocalDatabase(() => new PouchDB(options.documents ?? options.name, { revs_limit: 1 })),
        pullEveryMs: (options.pullEveryS ?? 60) * 1000,
      });
  }
}
