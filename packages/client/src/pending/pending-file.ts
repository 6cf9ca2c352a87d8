import type { ImportReceipt } from '../model/client.js';
import { PendingFileError } from '../model/errors.js';
import { Export, type ExportParts } from './export.js';
import { Import, type ImportParts } from './import.js';

/** The work of a store as a file, both ways (S7). */
export class PendingFile {
  readonly #parts: ExportParts;
  readonly #import: Import;

  constructor(parts: ExportParts & ImportParts) {
    this.#parts = parts;
    this.#import = new Import(parts);
  }

  export(): Promise<Blob> {
    return new Export(this.#parts).file();
  }

  import(file: Blob | string): Promise<ImportReceipt> {
    const given: unknown = file;
    if (typeof given === 'string') return this.#import.file(new Blob([given]));
    if (given instanceof Blob) return this.#import.file(given);
    return Promise.reject(new PendingFileError('not_a_pending_file', 'must be a Blob (a File), or its text'));
  }
}
