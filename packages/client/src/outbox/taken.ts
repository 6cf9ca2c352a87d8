import type { StoredDocs } from '../queue/stored-docs.js';
import { sequenceOf, transferDoc, transferId, type Header } from '../queue/stored.js';
import { entriesOf, isOver, noEntry, nothingTaken, progressData, type Entry } from './progress.js';

/** Whether all these publishers have taken all events of a bulk operation, by what is stored. One read. */
export async function takenBy(docs: StoredDocs, publishers: readonly string[]): Promise<(header: Header) => boolean> {
  const progress: { upTo: number; entries: ReadonlyMap<number, Entry> }[] = [];
  for (const name of publishers) {
    const stored = await docs.read(transferId(`publish:${name}`), transferDoc);
    const parsed = progressData.safeParse(stored === undefined ? undefined : JSON.parse(stored.data));
    const one = parsed.success ? parsed.data : nothingTaken;
    progress.push({ upTo: one.upTo, entries: entriesOf(one) });
  }
  return (header) => {
    const sequence = sequenceOf(header._id);
    return progress.every(
      ({ upTo, entries }) => sequence <= upTo || isOver(header, entries.get(sequence) ?? noEntry(sequence)),
    );
  };
}
