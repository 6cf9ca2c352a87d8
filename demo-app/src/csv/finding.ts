/** What the import may find in a file that is not clean, and what it does about it. Shown as they stand. */
export const findingKinds = {
  'file-not-known': 'File name is none of place.*.csv, person.*.csv, report.*.csv: not read',
  'column-twice': 'Column stands twice: the first one counts',
  'column-refused': 'Column can’t be stored: left out',
  'reference-twice': 'Reference stands twice: the first row counts, this one is left out',
  'row-twice': 'Row stands twice, word for word: stored once',
  'row-too-long': 'Row has more cells than the header: the rest is left out',
  'person-without-place': 'Person whose place is not there: left out, since a person must have a place',
  'link-leads-nowhere': 'Link leads nowhere: stored without it',
  'lookup-leads-nowhere': 'Value is looked up in a row that is not there: stored without it',
  'id-leads-nowhere': 'Written-out id that no file holds: stored as it is',
  'circle-of-places': 'Place lies in itself: stored without its parent',
  'value-not-readable': 'Value does not fit its column: stored without it',
} as const;

export type FindingKind = keyof typeof findingKinds;

export interface Finding {
  readonly kind: FindingKind;
  readonly file: string;
  readonly count: number;
  /** The first few, for people: a row number (the header is row 1) and what stands there. */
  readonly examples: readonly string[];
}

const examplesKept = 5;

/** Counts what is found by file and kind, and keeps the first examples of each. */
export class Findings {
  readonly #found = new Map<string, { kind: FindingKind; file: string; count: number; examples: string[] }>();

  add(kind: FindingKind, file: string, example: string): void {
    const name = `${kind} ${file}`;
    const entry = this.#found.get(name) ?? { kind, file, count: 0, examples: [] };
    entry.count += 1;
    if (entry.examples.length < examplesKept) entry.examples.push(example);
    this.#found.set(name, entry);
  }

  list(): readonly Finding[] {
    return [...this.#found.values()];
  }
}
