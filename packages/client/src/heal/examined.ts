import type { AnyAction, DocumentAction } from '../model/handler.js';
import type { Doc } from '../model/json.js';
import type { RevisionRead } from '../model/pouch.js';
import { withoutHistory } from '../model/revision.js';
import { endStates } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import { partAt } from '../queue/parts.js';
import { failureId, refusedIn, sequenceOf, type RowState, type StoredFailure } from '../queue/stored.js';
import type { Writer, Writers } from '../queue/writers.js';
import type { LocalDatabase } from '../store/local-database.js';
import type { HealedRows } from './healed-rows.js';
import type { Examined, OwnOperation } from './treatment.js';
import { inOrder, type Leaf, type OwnWrite } from './tree.js';

/** An operation of ours that wrote on a document with conflicts. */
export interface FoundOperation extends OwnOperation {
  readonly writer: Writer;
  readonly row: RowState;
  /** Why it has failed since it was applied. */
  readonly failure: StoredFailure | undefined;
}

/** A document with more than one leaf, and what we know of it. */
export interface Found extends Examined<FoundOperation> {
  /** Something is under way on it: it is looked at again later. */
  readonly isBusy: boolean;
  /** An operation must stay as it is until a failure of it is decided on, or its action is there. */
  readonly isHeld: boolean;
  /** The version that counts here is one that the server has refused, and nobody has decided on: nothing is built upon it. */
  readonly isRefused: boolean;
}

export interface ExaminingParts {
  readonly local: LocalDatabase;
  readonly writers: Writers;
  readonly failures: Failures;
  readonly actions: ReadonlyMap<string, AnyAction>;
}

/** Reads these documents with all their leaves, and our operations on them. Two reads of documents, however many there are. */
export async function examine(
  ids: readonly string[],
  rows: HealedRows,
  { local, writers, failures, actions }: ExaminingParts,
): Promise<readonly Found[]> {
  const trees = treesOf(await local.leaves(ids));
  const conflicted = [...trees].flatMap(([id, { leaves }]) => (leaves.length > 1 ? [id] : []));
  const found = await writers.of(
    conflicted,
    ({ s, r }) => s === 'intent' || (r !== undefined && s !== 'already-applied'),
  );
  const all = [...found.values()].flat();
  await rows.read(all);
  if (conflicted.length > 0) await failures.load();
  return ids.map((id) => {
    const { leaves, docs } = trees.get(id) ?? { leaves: [], docs: new Map<string, Doc>() };
    const own = (found.get(id) ?? []).flatMap((writer): FoundOperation[] => {
      const row = rows.of(writer);
      if (row?.r === undefined) return [];
      const action = actionOf(writer, actions);
      const failure = failures.get(failureId(sequenceOf(writer.header._id), writer.index));
      const standing = standingOf(row, action, failure);
      const { c: content } = writer.operation;
      return [{ writer, row, failure, action, content, standing, revs: [row.r, ...(row.h ?? [])] }];
    });
    const isUnderWay = ({ header, index, row }: Writer): boolean =>
      !isAtEnd(header) && (row.s === 'intent' || index >= header.cursor);
    const isRefused = isOnRefused(id, leaves, failures);
    return {
      id,
      leaves,
      docs,
      own,
      isBusy: (found.get(id) ?? []).some(isUnderWay),
      isHeld: isRefused || own.some(({ standing }) => standing === 'held'),
      isRefused,
    };
  });
}

function isOnRefused(id: string, leaves: readonly Leaf[], failures: Failures): boolean {
  const [winner] = inOrder(leaves);
  return failures
    .refusedOf(id)

    .some(
      (failure) =>
        failure.resolution === undefined && refusedIn(failure).some((rev) => winner?.ancestors.includes(rev) === true),
    );
}

function isAtEnd(header: Writer['header']): boolean {
  return endStates.has(header.state) && header.unsettled === undefined;
}

function actionOf({ header, index }: Writer, actions: ReadonlyMap<string, AnyAction>): DocumentAction | undefined {
  const action = actions.get(partAt(header, index).action);
  return action?.kind === 'document' ? action : undefined;
}

/** What an operation counts for that has an outcome; `failure` is that of this operation, if there is one. */
export function standingOf(
  row: RowState,
  action: DocumentAction | undefined,
  failure: StoredFailure | undefined,
): OwnWrite['standing'] {
  if (failure?.buried !== undefined && failure.resolution === undefined) return 'failed';
  if (row.s === 'failed') return 'over';
  // Refused by the server: until a person has decided, or the server takes it after all, it stays as it is.
  if (failure !== undefined) return failure.resolution === undefined ? 'held' : 'over';
  return action === undefined ? 'held' : 'counts';
}

function treesOf(reads: readonly RevisionRead[]): ReadonlyMap<string, { leaves: Leaf[]; docs: Map<string, Doc> }> {
  const trees = new Map<string, { leaves: Leaf[]; docs: Map<string, Doc> }>();
  for (const { id, doc, ancestors } of reads) {
    const tree = trees.get(id) ?? { leaves: [], docs: new Map<string, Doc>() };
    trees.set(id, tree);
    const rev = doc._rev ?? '';
    tree.leaves.push({ rev, deleted: doc._deleted === true, ancestors });
    tree.docs.set(rev, withoutHistory(doc));
  }
  return trees;
}
