import type { StoredDocument } from '@afield/testing';
import type { CrashWorld } from './world.js';

/** A document of the queue's store that is about to be written; what stands before it in the same call is written. */
export interface QueueWrite {
  readonly doc: StoredDocument;
  readonly before: StoredDocument | undefined;
}

/** What must hold, whatever happens. Each question is answered with what does not hold, in words. */
export interface Invariant {
  readonly name: string;
  /** The number of the invariant in the design. */
  readonly design: number;
  /** Asked when the app is told that a bulk operation is queued. */
  readonly confirmed?: (key: string, world: CrashWorld) => readonly string[];
  /** Asked about each document that is written to the queue's store. */
  readonly stored?: (write: QueueWrite, world: CrashWorld) => readonly string[];
  /** Asked about each document that an operation changes, right before it is written. */
  readonly written?: (doc: StoredDocument, world: CrashWorld) => readonly string[];
  /** Asked about each event that is written to the server, right before. */
  readonly published?: (doc: StoredDocument, world: CrashWorld) => readonly string[];
  /** Asked when a process has been started again and everything has come to its end. */
  readonly settled?: (world: CrashWorld) => readonly string[];
}

/** The message, when it is so. */
export function when(isSo: boolean, message: string): readonly string[] {
  return isSo ? [message] : [];
}
