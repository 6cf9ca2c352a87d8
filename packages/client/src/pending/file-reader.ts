import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { z } from 'zod/mini';
import { PendingFileError } from '../model/errors.js';
import { anyHead, fileVersion, head, line, type FileHead, type FileLine } from './format.js';

/** Bytes that are read at once; a longer line is held whole. */
const bytesAtOnce = 256_000;

/** A line, and where it is: 1 is the head. */
export interface ReadLine {
  readonly number: number;
  readonly line: FileLine;
}

/**
 * Reads a file of pending work, as often as it is asked to. Nothing of it is believed before it was read once to its end: it may be cut
 * off, or changed.
 */
export class FileReader {
  readonly #file: Blob;
  readonly #breathe: () => Promise<void>;

  constructor(file: Blob, breathe: () => Promise<void>) {
    this.#file = file;
    this.#breathe = breathe;
  }

  /** Throws `PendingFileError` when this is no such file, or one of a later version. */
  async head(): Promise<FileHead> {
    for await (const bytes of this.#bytes()) return headOf(bytes);
    throw notOurs();
  }

  /** All lines behind the head, each checked; throws `PendingFileError` at the first that is wrong, or at the end. */
  async *lines(): AsyncGenerator<ReadLine> {
    const hash = sha256.create();
    let whole: FileHead | undefined;
    let number = 0;
    for await (const bytes of this.#bytes()) {
      number++;
      if (whole === undefined) {
        whole = headOf(bytes);
        continue;
      }
      if (number - 1 > whole.lines) throw new PendingFileError('file_changed', 'has more lines than it was made with');
      hash.update(bytes).update(lineEnd);
      yield { number, line: lineOf(bytes, number) };
    }
    if (whole === undefined) throw notOurs();
    if (number - 1 < whole.lines) {
      const missing = `ends after line ${String(number)} of ${String(whole.lines + 1)}: it was cut off. Take the whole file`;
      throw new PendingFileError('file_cut', missing);
    }
    if (bytesToHex(hash.digest()) !== whole.sha256) {
      throw new PendingFileError('file_changed', 'is not as it was made: something in it was changed');
    }
  }

  /** The lines as bytes, without their ends. What follows the last end is no line: it was cut off. */
  async *#bytes(): AsyncGenerator<Uint8Array> {
    let open: Uint8Array[] = [];
    for (let at = 0; at < this.#file.size; at += bytesAtOnce) {
      const bytes = new Uint8Array(await this.#file.slice(at, at + bytesAtOnce).arrayBuffer());
      let from = 0;
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
        yield joined([...open, bytes.subarray(from, end)]);
        open = [];
        from = end + 1;
      }
      open.push(bytes.subarray(from));
      await this.#breathe();
    }
  }
}

const lineEnd = Uint8Array.of(10);

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first, ...rest] = parts;
  if (first !== undefined && rest.length === 0) return first;
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function headOf(bytes: Uint8Array): FileHead {
  const value = jsonOf(bytes);
  const any = anyHead.safeParse(value);
  if (!any.success) throw notOurs();
  if (any.data.version > fileVersion) {
    const version = String(any.data.version);
    throw new PendingFileError(
      'file_too_new',
      `has version ${version}, which this Afield does not know. Update the app`,
    );
  }
  return checked(head, value, 1);
}

function lineOf(bytes: Uint8Array, number: number): FileLine {
  const value = jsonOf(bytes);
  if (value === undefined) throw new PendingFileError('file_invalid', 'is no JSON', number);
  return checked(line, value, number);
}

function checked<Shape extends z.ZodMiniType>(shape: Shape, value: unknown, number: number): z.infer<Shape> {
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.map(String).join('.') ?? '';
  throw new PendingFileError('file_invalid', 'has another shape than expected', number, field);
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    return undefined;
  }
}

function notOurs(): PendingFileError {
  return new PendingFileError('not_a_pending_file', 'was not made by exportPending()');
}
