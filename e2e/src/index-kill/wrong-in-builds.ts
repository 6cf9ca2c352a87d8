import { truth } from './documents.js';

/** What the index has read of the source in one life of its browser, in the order in which it came. */
export type Life = readonly string[];

/** Rows of the source that a kill may cost: one batch. */
const batch = 100;

export interface Builds {
  readonly documents: number;
  /** The lives of the build that is killed: each but the last one ended by a kill. */
  readonly lives: readonly Life[];
  /** What the build has read that was not killed. */
  readonly undisturbed: Life;
  /** Rows of the index that was killed, and of the one that was not, in their order. */
  readonly rows: { readonly killed: readonly string[]; readonly undisturbed: readonly string[] };
}

/** What is not as it must be; empty when all is well. */
export function wrongInBuilds({ documents, lives, undisturbed, rows }: Builds): string[] {
  const wrong: string[] = [];
  const seen = new Set<string>();
  for (const [at, life] of lives.entries()) {
    const again = life.filter((id) => seen.has(id)).length;
    if (again > batch) wrong.push(`life ${String(at + 1)} has read ${String(again)} rows again`);
    for (const id of life) seen.add(id);
  }
  if (seen.size !== documents) wrong.push(`${String(seen.size)} of ${String(documents)} rows were read`);
  const most = documents + batch * (lives.length - 1);
  const all = readInAll(lives);
  if (all > most) wrong.push(`${String(all)} rows were read, more than ${String(most)}`);
  if (undisturbed.length !== documents) {
    wrong.push(`the undisturbed build has read ${String(undisturbed.length)} rows of ${String(documents)}`);
  }
  wrong.push(...differences('the killed index differs from the undisturbed one', rows.killed, rows.undisturbed));
  wrong.push(...differences('the undisturbed index differs from the documents', rows.undisturbed, truth(documents)));
  return wrong;
}

export function readInAll(lives: readonly Life[]): number {
  return lives.reduce((sum, life) => sum + life.length, 0);
}

function differences(what: string, found: readonly string[], wanted: readonly string[]): string[] {
  const at = found.findIndex((row, place) => row !== wanted[place]);
  if (at < 0 && found.length === wanted.length) return [];
  const place = at < 0 ? found.length : at;
  return [
    `${what}: ${String(found.length)} rows, not ${String(wanted.length)}; ` +
      `row ${String(place)} is ${found[place] ?? 'none'}, not ${wanted[place] ?? 'none'}`,
  ];
}
