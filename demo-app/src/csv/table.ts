import Papa from 'papaparse';
import { parseColumn, type Column } from './column.js';
import type { Findings } from './finding.js';

export interface SourceFile {
  readonly name: string;
  readonly text: string;
}

export interface Row {
  /** As an editor counts lines of a file without line breaks in cells: the header is 1. */
  readonly number: number;
  readonly cells: readonly string[];
}

/** One file: what its name says, its columns and its rows. */
export interface Table {
  readonly file: string;
  readonly kind: 'place' | 'person' | 'report';
  /** The middle of the file name: the type of a place, the form of a report. */
  readonly detail: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
}

const fileName = /^(place|person|report)\.([^.]+)\.csv$/i;

export function readTable(source: SourceFile, findings: Findings): Table | undefined {
  const named = fileName.exec(source.name);
  if (!named) {
    findings.add('file-not-known', source.name, source.name);
    return undefined;
  }
  const [header = [], ...lines] = Papa.parse<string[]>(source.text, { skipEmptyLines: 'greedy' }).data;
  const columns = readHeader(header, source.name, findings);
  const rows = lines.map((cells, index) => ({ number: index + 2, cells }));
  for (const row of rows) {
    if (row.cells.length > header.length) findings.add('row-too-long', source.name, `row ${String(row.number)}`);
  }
  const kind = (named[1] ?? '').toLowerCase() as Table['kind'];
  return { file: source.name, kind, detail: named[2] ?? '', columns, rows };
}

function readHeader(header: readonly string[], file: string, findings: Findings): Column[] {
  const seen = new Set<string>();
  return header.map((cell) => {
    const column = parseColumn(cell);
    if (column.kind === 'refused') {
      findings.add('column-refused', file, `${column.name}: ${column.why}`);
      return column;
    }
    if (seen.has(column.name)) {
      findings.add('column-twice', file, column.name);
      return { kind: 'refused', name: column.name, why: 'it stands twice' };
    }
    seen.add(column.name);
    return column;
  });
}

/** The text of a column of this row by the column's name, excluded ones included; empty when there is none. */
export function cellOf(table: Table, row: Row, name: string): string {
  const index = table.columns.findIndex((column) => column.kind !== 'refused' && column.name === name);
  return index < 0 ? '' : (row.cells[index] ?? '').trim();
}
