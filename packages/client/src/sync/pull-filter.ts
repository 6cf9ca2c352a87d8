import { canonicalJson } from '../queue/canonical-json.js';

/** Which documents the server's changes feed tells of. */
export interface PullFilter {
  /**
   * Says which filter it is in the id of the checkpoint. The same in every build of an app, whatever the order in which it
   * writes the fields of a selector, or the order of a list.
   */
  readonly key: string;
  readonly name: '_selector' | '_doc_ids';
  /** What the feed is asked with. */
  readonly body: string;
}

/** Documents that a CouchDB selector fits. */
export function selectorFilter(selector: object): PullFilter {
  const text = canonicalJson(selector);
  return { key: `selector ${text}`, name: '_selector', body: `{"selector":${text}}` };
}

/** The documents of a list. `key` names the list: what is in it may change under one checkpoint. */
export function idsFilter(key: string, ids: readonly string[]): PullFilter {
  return { key, name: '_doc_ids', body: JSON.stringify({ doc_ids: ids }) };
}

/**
 * Asks for changes with the filter, in the body of a POST. Given to PouchDB as an option instead, it would become a part of
 * the checkpoint's id as it is written, and would print a warning where a build of PouchDB has no plugin for filters.
 * `timeoutMs`: how long the server may look for a change without a sign.
 */
export function asking(url: string, init: RequestInit, filter: PullFilter, timeoutMs: number): [string, RequestInit] {
  const asked = new URL(url);
  if (!asked.pathname.endsWith('/_changes')) return [url, init];
  asked.searchParams.set('filter', filter.name);
  asked.searchParams.set('timeout', String(timeoutMs));
  const headers = new Headers(init.headers);
  headers.set('content-type', 'application/json');
  return [asked.href, { ...init, headers, method: 'POST', body: filter.body }];
}
