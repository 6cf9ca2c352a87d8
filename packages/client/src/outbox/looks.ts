import { sequenceOf } from '../queue/stored.js';
import type { Place } from './events.js';
import type { Looked } from './progress.js';

/** What became of these places, for each bulk operation. `waits` says it of a place that has an event. */
export function looksAt(places: readonly Place[], waits: (place: Place) => boolean): readonly Looked[] {
  const found = new Map<number, { indexes: number[]; taken: number; waiting: number[]; open: number[] }>();
  for (const place of places) {
    const sequence = sequenceOf(place.header._id);
    const look = found.get(sequence) ?? { indexes: [], taken: 0, waiting: [], open: [] };
    found.set(sequence, look);
    look.indexes.push(place.index);
    if (place.isOpen) look.open.push(place.index);
    if (place.event === undefined) continue;
    if (waits(place)) look.waiting.push(place.index);
    else look.taken++;
  }
  return [...found].map(([sequence, look]) => ({ sequence, ...look }));
}
