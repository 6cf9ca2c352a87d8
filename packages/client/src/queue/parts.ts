import type { Header } from './stored.js';

/** The action at this place, and how many of its operations follow from there. */
export function partAt(header: Pick<Header, 'parts'>, index: number): { action: string; left: number } {
  let end = 0;
  for (const part of header.parts) {
    end += part.count;
    if (index < end) return { action: part.action, left: end - index };
  }
  throw new RangeError('The cursor lies past the last operation.');
}
