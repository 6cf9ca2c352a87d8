import { omit } from 'es-toolkit/object';
import { bytesPerDocument, rowsPerDocument, type FailureRow, type FailuresDocument } from './result-documents.js';

/** Left for what stands around the rows: the names, and the codes of a hundred rows twice. */
const aroundRows = 20_000;
const bytesOfRows = bytesPerDocument - aroundRows;

const encoder = new TextEncoder();

/** The length of a value as JSON in UTF-8. */
export function jsonBytes(value: unknown): number {
  return encoder.encode(JSON.stringify(value)).length;
}

/** Rows in lists of at most 100 and 500 kB (S1). A content that fits into none is left out, with a mark. */
export function* inChunks(rows: Iterable<FailureRow>): Generator<FailureRow[]> {
  let chunk: FailureRow[] = [];
  let size = 0;
  for (const given of rows) {
    let row = given;
    let bytes = jsonBytes(row) + 1;
    if (bytes > bytesOfRows) {
      row = withoutContent(row);
      bytes = jsonBytes(row) + 1;
    }
    if (chunk.length >= rowsPerDocument || (chunk.length > 0 && size + bytes > bytesOfRows)) {
      yield chunk;
      chunk = [];
      size = 0;
    }
    chunk.push(row);
    size += bytes;
  }
  if (chunk.length > 0) yield chunk;
}

/** What is said of the rows at the top of their document, where an index finds it. */
export function summaryOf(
  rows: readonly FailureRow[],
): Pick<FailuresDocument, 'codes' | 'openCodes' | 'open' | 'firstAt' | 'lastAt' | 'operations'> {
  const open = rows.filter(({ resolution }) => resolution === undefined);
  const times = rows.map(({ at }) => at);
  return {
    codes: codesOf(rows),
    openCodes: codesOf(open),
    open: open.length,
    firstAt: times.length === 0 ? null : Math.min(...times),
    lastAt: times.length === 0 ? null : Math.max(...times),
    operations: [...rows],
  };
}

/** The same document for a server that does not take it as large as it is. */
export function withoutContents(doc: FailuresDocument): FailuresDocument {
  return { ...doc, operations: doc.operations.map(withoutContent) };
}

function withoutContent(row: FailureRow): FailureRow {
  if (row.content === undefined) return row;
  return { ...omit(row, ['content']), withheld: 'too_large' };
}

function codesOf(rows: readonly FailureRow[]): string[] {
  return [...new Set(rows.map(({ code }) => code))].sort();
}
