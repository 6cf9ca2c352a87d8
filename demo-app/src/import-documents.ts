import type { PouchLike } from '@afield/client';
import type { Finding } from './csv/finding.js';
import { readFilesInSteps, type ReadFiles } from './csv/read-files.js';
import type { SourceFile } from './csv/table.js';

/** What an import did, in counts of documents. */
export interface ImportSummary {
  readonly rows: Readonly<Record<string, number>>;
  readonly documents: number;
  readonly written: number;
  /** Were on the device before and stay as they are. */
  readonly alreadyThere: number;
  readonly refused: number;
  readonly findings: readonly Finding[];
}

export interface ImportProgress {
  readonly done: number;
  readonly total: number;
}

const chunk = 250;
const workAtOnceMs = 25;

/**
 * Writes the documents of the files to the device; the client brings them to the server. Documents that are there
 * already stay as they are, so that an import that was cut off can simply be done again.
 */
export async function importFiles(
  db: PouchLike,
  files: readonly SourceFile[],
  now: number,
  progress: (progress: ImportProgress) => void,
): Promise<ImportSummary> {
  const { documents, findings, rows } = await readWithPauses(files, now);
  let written = 0;
  let alreadyThere = 0;
  let refused = 0;
  for (let start = 0; start < documents.length; start += chunk) {
    progress({ done: start, total: documents.length });
    const answers = await db.bulkDocs(documents.slice(start, start + chunk));
    for (const answer of answers as { ok?: boolean; name?: string }[]) {
      if (answer.ok === true) written += 1;
      else if (answer.name === 'conflict') alreadyThere += 1;
      else refused += 1;
    }
  }
  progress({ done: documents.length, total: documents.length });
  return { rows, documents: documents.length, written, alreadyThere, refused, findings };
}

/** Lets the page draw and answer while thousands of rows are read. */
async function readWithPauses(files: readonly SourceFile[], now: number): Promise<ReadFiles> {
  const steps = readFilesInSteps(files, now);
  for (let since = performance.now(); ;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - since < workAtOnceMs) continue;
    await new Promise((resolve) => setTimeout(resolve));
    since = performance.now();
  }
}
