import type { DocumentAction } from '../model/handler.js';
import type { Doc } from '../model/json.js';
import { replay, type Replay, type ReplayedOperation } from './replay.js';
import { judge, type Judgement, type Leaf, type OwnWrite } from './tree.js';

/** An operation of ours that can be run again. */
export interface OwnOperation extends OwnWrite {
  /** Undefined: it cannot be run here. */
  readonly action: DocumentAction | undefined;
  readonly content: unknown;
}

/** A document, all its leaves, and our operations on it in the order of the queue. */
export interface Examined<Own extends OwnOperation = OwnOperation> {
  readonly id: string;
  readonly leaves: readonly Leaf[];
  /** The leaves as documents, by revision. */
  readonly docs: ReadonlyMap<string, Doc>;
  readonly own: readonly Own[];
}

/** What is to be done about a document with a buried operation. */
export interface Treatment<Own extends OwnOperation = OwnOperation> {
  readonly judgement: Judgement;
  /** The operations that are run, in their order: the first is a buried one. */
  readonly operations: readonly Own[];
  readonly replay: Replay;
}

/**
 * What is to be done about one document; undefined where no operation is buried. Throws `RetryableError` where an action
 * says that its error may pass.
 */
export function treatmentOf<Own extends OwnOperation>({
  leaves,
  docs,
  own,
}: Examined<Own>): Treatment<Own> | undefined {
  const judgement = judge(leaves, own);
  const [first] = judgement?.buried ?? [];
  if (judgement === undefined || first === undefined) return undefined;
  const buried = new Set(judgement.buried.flatMap((place) => own[place] ?? []));
  if (judgement.isGone) {
    // Whatever it changed, the document was deleted since. Nothing is written; a later document of this id is not its own.
    const outcomes = new Map([...buried].map((_, place) => [place, { kind: 'there' } as const]));
    return { judgement, operations: [...buried], replay: { doc: undefined, outcomes } };
  }
  const winner = docs.get(judgement.winner.rev);
  if (winner === undefined) return undefined;
  const operations = own.filter(({ standing }, place) => place >= first && standing === 'counts');
  const run = operations.flatMap((one) => asReplayed(one, buried.has(one)));
  return { judgement, operations, replay: replay(winner, run) };
}

/** The operation as it is run on the winner; nothing where it cannot be. */
export function asReplayed({ action, content }: OwnOperation, isBuried: boolean): readonly ReplayedOperation[] {
  return action === undefined ? [] : [{ action, content, isBuried }];
}

/** Live losing leaves of a document that is deleted: they go first, the winner last (S8). */
export function losingLeaves({ leaves }: Examined, { winner }: Judgement): readonly string[] {
  return leaves.flatMap(({ rev, deleted }) => (deleted || rev === winner.rev ? [] : [rev]));
}

/**
 * The document as it is after its treatment: what is left to be removed is judged by that. `rev` is the revision in which
 * the operations are now.
 */
export function afterTreatment<Own extends OwnOperation>(
  examined: Examined<Own>,
  { judgement, operations, replay: { doc, outcomes } }: Treatment<Own>,
  rev: string,
): Examined<Own> {
  const outcomeOf = new Map([...outcomes].map(([place, outcome]) => [operations[place], outcome]));
  const own = examined.own.map((one): Own => {
    const outcome = outcomeOf.get(one);
    if (outcome === undefined) return one;
    return outcome.kind === 'failed' ? { ...one, standing: 'failed' } : { ...one, revs: [...one.revs, rev] };
  });
  if (doc === undefined) return { ...examined, own };
  const { winner } = judgement;
  const deleted = doc._deleted === true;
  const written: Leaf = { rev, deleted, ancestors: [rev, ...winner.ancestors] };
  // Of a document that was deleted nothing is left to be removed.
  const others = deleted ? [] : examined.leaves.filter((leaf) => leaf !== winner);
  const docs = new Map([...examined.docs, [rev, { ...doc, _rev: rev }] as const]);
  return { ...examined, own, leaves: [written, ...others], docs };
}
