import { PendingFileError } from '../model/errors.js';
import type { Owner } from '../model/store-name.js';
import type { FileReader } from './file-reader.js';
import type { FileHead, FileLine, LineOf } from './format.js';

/** What an import has to know of a file before it begins. */
export interface CheckedFile {
  readonly head: FileHead;
  /** The given keys of its bulk operations, with where they are. */
  readonly keys: readonly GivenKey[];
}

interface GivenKey {
  readonly line: number;
  readonly key: string;
  readonly hash: string;
}

/** Reads a whole file and stores nothing. Throws `PendingFileError` when any of it is wrong, or it is someone else's (S7). */
export async function check(file: FileReader, owner: Owner): Promise<CheckedFile> {
  const head = await file.head();
  if (differ(head.user, owner.user)) throw new PendingFileError('other_user', 'holds the work of another user');
  if (differ(head.server, owner.server)) throw new PendingFileError('other_server', 'holds work for another server');
  const order = new LineOrder();
  const keys: GivenKey[] = [];
  for await (const { number, line } of file.lines()) {
    const wrong = order.wrongIn(line);
    if (wrong !== undefined) throw new PendingFileError('file_invalid', wrong, number);
    if (line.kind !== 'bulk-operation' || line.key === undefined) continue;
    keys.push({ line: number, key: line.header.key, hash: line.key.hash });
  }
  const left = order.wrongAtEnd();
  if (left !== undefined) throw new PendingFileError('file_invalid', left);
  return { head, keys };
}

function differ(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

/** Which line may follow which. */
class LineOrder {
  #stage: 'documents' | 'bulk-operations' | 'failed-edits' | 'conflicts' = 'documents';
  /** The bulk operation, or the conflict, whose lines follow. */
  #open: Owning | undefined;
  readonly #ids = new Set<string>();

  wrongIn(line: FileLine): string | undefined {
    switch (line.kind) {
      case 'document':
        return this.#stage === 'documents' ? undefined : outOfPlace(line);
      case 'bulk-operation':
        if (this.#stage === 'documents') this.#stage = 'bulk-operations';
        if (this.#stage !== 'bulk-operations' || this.#open !== undefined) return outOfPlace(line);
        return this.#begin(line);
      case 'failed-edit':
        if (this.#open !== undefined || this.#stage === 'conflicts') return outOfPlace(line);
        this.#stage = 'failed-edits';
        return undefined;
      case 'conflict': {
        const left = this.#endOfConflict();
        if (left !== undefined) return left;
        if (this.#open !== undefined) return outOfPlace(line);
        this.#stage = 'conflicts';
        const { content } = line.entry;
        this.#open = content === undefined ? undefined : owning(content, false);
        return undefined;
      }
      case 'standing':
        return this.#end(line);
      default:
        return this.#inside(line);
    }
  }

  wrongAtEnd(): string | undefined {
    return this.#endOfConflict() ?? (this.#open === undefined ? undefined : 'ends in the middle of a bulk operation');
  }

  #begin({ header }: LineOf<'bulk-operation'>): string | undefined {
    if (this.#ids.has(header.id)) return 'brings a bulk operation for the second time';
    this.#ids.add(header.id);
    if (header.parts.reduce((sum, part) => sum + part.count, 0) !== header.total) return 'does not say what it counts';
    this.#open = owning(header, true);
    return undefined;
  }

  #inside(
    line: Exclude<FileLine, { kind: 'document' | 'bulk-operation' | 'failed-edit' | 'conflict' | 'standing' }>,
  ): string | undefined {
    const open = this.#open;
    if (open === undefined) return outOfPlace(line);
    switch (line.kind) {
      case 'request':
        if (!open.needsRequest || open.hasRequest || !isRequest(line.request)) return outOfPlace(line);
        open.hasRequest = true;
        return undefined;
      case 'subjects':
        return open.needsRequest ? undefined : outOfPlace(line);
      case 'operations': {
        const end = line.from + line.operations.length;
        const isNext = line.from === open.operations && end <= open.total && line.operations.length > 0;
        const isFull = line.operations.length === perLine || end === open.total;
        if (!isNext || !isFull || line.keys.some(([place]) => line.operations[place]?.k === undefined))
          return outOfPlace(line);
        open.operations = end;
        return undefined;
      }
      case 'batch':
        if (!open.isBulkOperation || line.from < open.batches || line.rows.length === 0) return outOfPlace(line);
        open.batches = line.from + line.rows.length;
        return open.batches <= open.total ? undefined : outOfPlace(line);
      case 'failure':
        return open.isBulkOperation && line.failure.index !== null && line.failure.index < open.total
          ? undefined
          : outOfPlace(line);
    }
  }

  #end(line: LineOf<'standing'>): string | undefined {
    const open = this.#open;
    if (open?.isBulkOperation !== true || !isWhole(open)) return outOfPlace(line);
    const { cursor } = line.standing;
    if (cursor < 0 || cursor > open.total) return 'is further than its bulk operation';
    this.#open = undefined;
    return undefined;
  }

  #endOfConflict(): string | undefined {
    if (this.#open === undefined || this.#open.isBulkOperation) return undefined;
    if (!isWhole(this.#open)) return 'ends in the middle of a conflict';
    this.#open = undefined;
    return undefined;
  }
}

const perLine = 100;

interface Owning {
  readonly isBulkOperation: boolean;
  readonly total: number;
  readonly needsRequest: boolean;
  hasRequest: boolean;
  operations: number;
  batches: number;
}

function owning({ total, plan }: { total: number; plan?: unknown }, isBulkOperation: boolean): Owning {
  return { isBulkOperation, total, needsRequest: plan !== undefined, hasRequest: false, operations: 0, batches: 0 };
}

function isWhole({ operations, total, needsRequest, hasRequest }: Owning): boolean {
  return operations === total && hasRequest === needsRequest;
}

/** JSON text of `{ request }`. */
function isRequest(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null;
  } catch {
    return false;
  }
}

function outOfPlace({ kind }: FileLine): string {
  return `(${kind}) does not belong there`;
}
