/** The databases of a day, by what is in them. */
export const databases = { records: 'records', results: 'afield-results', events: 'afield-events' } as const;

/** What a request is for, in the words of the page. */
export const kinds = [
  'pull: changes',
  'pull: documents',
  'pull: checkpoint',
  'push: what is missing',
  'push: documents',
  'push: checkpoint',
  'results, failures, device document',
  'events',
  'session',
  'about the server or a database',
] as const;
export type Kind = (typeof kinds)[number];

/** Throws for a request that belongs to no kind: nothing is left out of the count. */
export function kindOf(method: string, url: string): Kind {
  const path = decodeURIComponent(new URL(url).pathname).slice(1);
  const [database = '', ...rest] = path.split('/');
  const resource = rest.join('/');
  if (database === '_session') return 'session';
  if (database === databases.results) return 'results, failures, device document';
  if (database === databases.events) return 'events';
  if (path === '' || (database === databases.records && resource === '')) return 'about the server or a database';
  if (database === databases.records) {
    if (resource === '_changes') return 'pull: changes';
    if (resource === '_bulk_get') return 'pull: documents';
    if (resource === '_revs_diff') return 'push: what is missing';
    if (resource === '_bulk_docs') return 'push: documents';
    if (resource.startsWith('_local/afield-push-')) return 'push: checkpoint';
    if (resource.startsWith('_local/')) return 'pull: checkpoint';
  }
  throw new Error(`A request of no known kind: ${method} /${path}`);
}

/** Documents that a request brings to the server, by what they are. */
export const written = ['records', 'results', 'failures', 'device documents', 'events', 'checkpoints'] as const;
export type Written = (typeof written)[number];

export function writtenOf(database: string, id: string): Written {
  if (database === databases.events) return 'events';
  if (database !== databases.results) return 'records';
  if (id.startsWith('device:')) return 'device documents';
  return id.startsWith('failures:') ? 'failures' : 'results';
}
