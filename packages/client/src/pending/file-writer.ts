import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { fileType, type FileCounts, type FileHead, type FileLine } from './format.js';

/** Characters that are in memory as text; what came before is a Blob, which a browser may keep on disk. */
const textAtOnce = 250_000;

/** Puts a file together line by line. */
export class FileWriter {
  readonly #hash = sha256.create();
  readonly #parts: Blob[] = [];
  readonly #counts = { bulkOperations: 0, operations: 0, documents: 0 };
  readonly #breathe: () => Promise<void>;
  #text: string[] = [];
  #length = 0;
  #lines = 0;

  /** `breathe` gives the page a turn in the middle of long work. */
  constructor(breathe: () => Promise<void>) {
    this.#breathe = breathe;
  }

  async add(line: FileLine): Promise<void> {
    const text = `${JSON.stringify(line)}\n`;
    this.#text.push(text);
    this.#length += text.length;
    this.#lines++;
    if (this.#length >= textAtOnce) await this.#flush();
  }

  /** More of what a person is told of the file. */
  count(more: Partial<FileCounts>): void {
    this.#counts.bulkOperations += more.bulkOperations ?? 0;
    this.#counts.operations += more.operations ?? 0;
    this.#counts.documents += more.documents ?? 0;
  }

  /** The whole file. */
  async end(head: Omit<FileHead, 'counts' | 'lines' | 'sha256'>): Promise<Blob> {
    await this.#flush();
    const sha256 = bytesToHex(this.#hash.digest());
    const whole: FileHead = { ...head, counts: this.#counts, lines: this.#lines, sha256 };
    return new Blob([`${JSON.stringify(whole)}\n`, ...this.#parts], { type: fileType });
  }

  async #flush(): Promise<void> {
    const text = this.#text.join('');
    this.#text = [];
    this.#length = 0;
    const bytes = utf8ToBytes(text);
    this.#hash.update(bytes);
    this.#parts.push(new Blob([new Uint8Array(bytes)]));
    await this.#breathe();
  }
}
