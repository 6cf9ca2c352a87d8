import type { Doc, OperationInput } from '@afield/client';

/** Documents and one batch of operations on them: each document is named at most once, as in every batch (R10). */
export interface BatchSample {
  readonly docs: readonly Doc[];
  /** As an app queues them: `{ id, … }`. */
  readonly operations: readonly OperationInput[];
}

/** The same for one document and one operation. */
export interface SingleSample {
  readonly doc: Doc;
  readonly operation: OperationInput;
}

export type ActionSample = BatchSample | SingleSample;

/** A sample that no batch can be made of; the suite says nothing about the action. */
export class InvalidSampleError extends Error {
  readonly code = 'invalid_sample';
  constructor(
    why: string,
    readonly sample: ActionSample,
  ) {
    super(`${why}. Sample: ${JSON.stringify(sample)}`);
    this.name = 'InvalidSampleError';
  }
}

/** The batch of a sample. @throws InvalidSampleError */
export function batchOf(sample: ActionSample): BatchSample {
  const batch = 'doc' in sample ? { docs: [sample.doc], operations: [sample.operation] } : sample;
  if (batch.operations.length > 100) throw new InvalidSampleError('A batch has at most 100 operations', sample);
  const seen = new Set<unknown>();
  for (const { id } of batch.operations) {
    if (typeof id !== 'string' || id === '') continue;
    if (seen.has(id)) throw new InvalidSampleError(`Two operations on the document "${id}" are not one batch`, sample);
    seen.add(id);
  }
  return batch;
}
