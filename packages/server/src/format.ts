import { stringify } from 'csv-stringify/sync';

/** How a list is written: a JSON object in each line, or CSV with a line of names first. */
export type Format = 'jsonl' | 'csv';

/** Turns rows into text. */
export interface Writer {
  /** What comes before the first row. */
  readonly begin: string;
  row(row: object): string;
}

/** A writer of rows that have these columns. */
export function writerOf(format: Format, columns: readonly string[]): Writer {
  if (format === 'csv') {
    const row = (given: object): string => {
      const values = new Map<string, unknown>(Object.entries(given));
      return line(columns.map((column) => cell(values.get(column))));
    };
    return { begin: line(columns), row };
  }
  // What JSON leaves as it is, but a terminal might obey.
  return { begin: '', row: (row) => `${JSON.stringify(row).replace(/[\u007f-\u009f]/g, asEscape)}\n` };
}

function asEscape(sign: string): string {
  return `\\u00${sign.charCodeAt(0).toString(16)}`;
}

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
