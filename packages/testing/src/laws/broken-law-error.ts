import type { BatchSample } from './sample.js';

/** What every action must keep to. */
export const laws = [
  'comes-to-its-end',
  'twice-is-once',
  'own-effect',
  'applied-writes-nothing',
  'keeps-the-rest',
  'any-order',
] as const;

/**
 * - `comes-to-its-end`: the handler has no bug (R5), and does not wait for ever.
 * - `twice-is-once`: a batch that runs again, also after an answer that got lost, leaves the same documents (R3).
 * - `own-effect`: what worked never fails when it runs again (R3).
 * - `applied-writes-nothing`: what is applied already is not written again (R6).
 * - `keeps-the-rest`: fields that the action does not know, and attachments, stay as they are (S8).
 * - `any-order`: a batch in the opposite order leaves the same documents.
 */
export type Law = (typeof laws)[number];

/** An action breaks a law; the message holds the law, what happened, and the sample. */
export class BrokenLawError extends Error {
  readonly code = 'broken_law';
  constructor(
    readonly action: string,
    readonly law: Law,
    readonly what: string,
    readonly sample: BatchSample,
    /** How to run this very sample again, when it was generated. */
    readonly replay?: { readonly seed: number; readonly path: string },
  ) {
    const again = replay === undefined ? '' : ` To run it again: ${JSON.stringify(replay)}.`;
    super(`The action "${action}" breaks the law "${law}": ${what}. Sample: ${JSON.stringify(sample)}.${again}`);
    this.name = 'BrokenLawError';
  }
}
