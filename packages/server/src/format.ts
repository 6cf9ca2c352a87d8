import { stringify } from 'csv-stringify/sync';

/** How a list is written: a JSON object in each line, or CSV with a line of names first. */
export type Format = 'jsonl' | 'csv';

/** Turns rows into text. All rows have the same fields. */
export interface Writer {
  /** What comes before the first row; the fields of a row are named by `columns`. */
  begin(columns: readonly string[]): string;
  row(row: object): string;
}

export const writers: Readonly<Record<Format, Writer>> = {
  jsonl: {
    begin: () => '',
    row: (row) => `${JSON.stringify(row)}\n`,
  },
  csv: {
    begin: (columns) => line([...columns]),
    row: (row) => line(Object.values(row).map(cell)),
  },
};

function cell(value: unknown): string | number {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return value.join(' ');
  return JSON.stringify(value);
}

/** RFC 4180. What a spreadsheet would run as a formula gets an apostrophe in front: devices write what stands here. */
function line(cells: readonly (string | number)[]): string {
  return stringify([[...cells]], { record_delimiter: 'windows', escape_formulas: true });
}
