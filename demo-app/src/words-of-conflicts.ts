import type { BulkOperationStatus, QuarantineEntry, QuarantineKind } from '@afield/client';
import { states, type Words } from './words.js';

const kinds: Record<QuarantineKind, string> = {
  operation: 'One key was used for two different changes',
  'bulk-operation': 'One key was used for two different requests',
  create: 'This record is there already, with other content',
  event: 'The event is stored already, with other content',
};

const secondTaken: Record<QuarantineKind, string> = {
  operation: 'the second change is made too, after the first one.',
  'bulk-operation': 'the second request is done too, after the first one.',
  create: 'the record gets the content of the second one.',
  event: 'the second event is published too, under another name.',
};

export function wordsOfConflict(kind: QuarantineKind): { readonly what: string; readonly ifSecond: string } {
  return { what: kinds[kind], ifSecond: secondTaken[kind] };
}

/** What a person has decided, and what came of it. */
export function wordsOfDecision(
  { resolution }: QuarantineEntry,
  bulkOperations: readonly BulkOperationStatus[],
): Words {
  if (resolution?.decision === 'keep-first') return { text: 'The first one was kept', mood: 'good' };
  if (resolution?.decision === 'failure-discarded') {
    return { text: 'The failed change was discarded. The first one stays', mood: 'waiting' };
  }
  if (resolution?.decision === 'failure-retried') return { text: 'The failed change was tried again', mood: 'waiting' };
  if (resolution?.decision !== 'take-second') return { text: 'Discarded. The first one stays', mood: 'waiting' };
  const bulk = bulkOperations.find(({ id }) => id === resolution.bulkOperationId);
  if (bulk === undefined) return { text: 'The second one was taken', mood: 'good' };
  const { text, mood } = states[bulk.state];
  return { text: `The second one was taken, as #${String(bulk.sequence)}. ${text}`, mood };
}
