import type { StoredDocs } from '../queue/stored-docs.js';
import { sequenceOf, transferDoc, transferId, type Header } from '../queue/stored.js';
import {
  entriesOf,
  isOver,
  isPassed,
  noEntry,
  nothingTaken,
  progressData,
  type Entry,
  type Progress,
} from './progress.js';

/** Whether all these publishers have taken all events of a bulk operation, by what is stored. One read. */
export async function takenBy(docs: StoredDocs, publishers: readonly string[]): Promise<(header: Header) => boolean> {
  const all: { progress: Progress; entries: ReadonlyMap<number, Entry> }[] = [];
  for (const name of publishers) {
    const stored = await docs.read(transferId(`publish:${name}`), transferDoc);
    const parsed = progressData.safeParse(stored === undefined ? undefined : JSON.parse(stored.data));
    const progress = parsed.success ? parsed.data : nothingTaken;
    all.push({ progress, entries: entriesOf(progress) });
  }
  return (header) => {
    const sequence = sequenceOf(header._id);
    return all.every(
      ({ progress, entries }) =>
        isPassed(progress, entries, sequence) || isOver(header, entries.get(sequence) ?? noEntry(sequence)),
    );
  };
}
