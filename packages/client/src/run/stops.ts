import { isOutcome, type Header, type RowState } from '../queue/stored.js';

/** So many stops of the process, without any progress, make a batch suspect; so many more, alone, an operation. */
export const mostStops = 5;

/** Whether the present batch may be what kills the process: its operations run one by one, and nothing beside them (R16). */
export function isSuspect(header: Pick<Header, 'stops'>): boolean {
  return (header.stops ?? 0) >= mostStops;
}

/** The operation that runs alone next: the one that has stopped the process least, so that none waits for a bad one. */
export function nextAlone(rows: readonly RowState[]): number | undefined {
  let found: number | undefined;
  let least = Infinity;
  rows.forEach((row, place) => {
    const { k = 0 } = row;
    if (isOutcome(row) || k >= least) return;
    found = place;
    least = k;
  });
  return found;
}

/** The rows after the process has stopped while this one ran alone. */
export function withStop(rows: readonly RowState[], place: number): readonly RowState[] {
  return rows.map((row, at) => (at === place ? { ...row, k: (row.k ?? 0) + 1 } : row));
}

/** Whether this operation has stopped the process alone as often as it may. */
export function isCrasher(row: RowState | undefined): boolean {
  return (row?.k ?? 0) >= mostStops;
}
