import { readEventDocument, type Doc, type DocumentEvent } from '@afield/client';
import { isObject, type JsonObject } from './json.js';

/** An event that reached its database: stored now, or there already. */
export type Publication = Pick<DocumentEvent, 'id' | 'key' | 'documentId'>;

/** What came to the database of events, in its order: each time that an event came, not only the first. */
export class Publications {
  readonly all: Publication[] = [];
  /** What came there and is no event. */
  readonly strange: string[] = [];

  /**
   * Takes up a bulk write that the server has carried out, with its own rows. What it refused was not published; a
   * conflict means that the event came once more. Answers with what was published.
   */
  note(docs: readonly JsonObject[], rows: readonly unknown[]): readonly Publication[] {
    const refused = new Set(
      rows
        .filter(isObject)
        .filter((row) => row['error'] !== undefined && row['error'] !== 'conflict')
        .map((row) => row['id']),
    );
    const fresh: Publication[] = [];
    for (const doc of docs) {
      if (refused.has(doc['_id'])) continue;
      const reading = readEventDocument(doc as unknown as Doc);
      if (reading.kind !== 'event') this.strange.push(`events: ${String(doc['_id'])} is no event (${reading.kind})`);
      else fresh.push(reading.event);
    }
    this.all.push(...fresh);
    return fresh;
  }

  times(key: string): number {
    return this.all.filter((one) => one.key === key).length;
  }

  ids(key: string): ReadonlySet<string> {
    return new Set(this.all.filter((one) => one.key === key).map(({ id }) => id));
  }

  /** Place of the first publication of this key; undefined when there was none. */
  firstOf(key: string): number | undefined {
    const at = this.all.findIndex((one) => one.key === key);
    return at < 0 ? undefined : at;
  }
}

/** What a document of a bulk write is called in a case: its id, or for an event also its document and its key. */
export function namesOf(doc: JsonObject, isEvent: boolean): readonly string[] {
  const names = isEvent ? [doc['_id'], doc['documentId'], doc['key']] : [doc['_id'] ?? doc['id']];
  return names.filter((name) => typeof name === 'string');
}
