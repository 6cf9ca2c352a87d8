import {
  defineAction,
  judgeWrite,
  readRows,
  removeLeaves,
  type Doc,
  type DocumentStore,
  type Failure,
  type HandlerContext,
  type JudgedWrite,
  type OperationOf,
  type WriteAnswer,
  type WriteRow,
} from '@afield/client';
import { z } from 'zod/mini';
import { isNone, ownField } from './lineage.js';

const prefix = 'org.couchdb.user:';

type Operation = OperationOf<{ readonly facilities?: string | string[] | null | undefined }>;

/** A user who is to go: what the server has of them. */
interface User {
  readonly operation: Operation;
  readonly account: Doc | undefined;
  /** Live versions of the account beside it that lost a conflict: each would be the account once this one is gone. */
  readonly hidden: readonly string[];
  readonly settings: Doc | undefined;
}

/**
 * `delete-user`: the user's account in `_users` is deleted, and the settings document of the same id in the app's
 * database, if there is one, becomes `inactive: true` with a `deletion_date` (milliseconds since 1970; one that is there
 * is kept). The operation's id is `org.couchdb.user:NAME`. All of it happens at the server, whatever the target; whoever
 * is signed in must be allowed to delete accounts.
 *
 * - `facilities`: one id or a list. A user with a facility (`facility_id`: the account's, else the settings document's)
 *   that is not in it stays. Null: a user with any facility stays. Leave it out, and nothing is compared.
 *
 * Gives one event, `documents.deleted.user`, for account and settings together.
 *
 * Hidden conflicts of the account go before it, so that none of them becomes the account (S8).
 *
 * A user whose account is gone, or never was, and whose settings are inactive or not there, counts as done. Fails with
 * `guard_mismatch`, `invalid_id`, or as the server refuses (`forbidden` …). Source: R6.
 */
export const deleteUser = defineAction({
  name: 'delete-user',
  runsAt: 'server',
  event: () => ({ kind: 'deleted', type: 'user' }),
  operation: z.strictObject({ facilities: z.optional(z.nullable(z.union([z.string(), z.array(z.string())]))) }),
  run: async (batch, context) => {
    const { server } = context;
    const [accounts, settings] = [server.database('_users'), server.documents];
    const failed: (Failure & { index: number })[] = [];
    const alreadyApplied: number[] = [];
    const fail = ({ index }: Operation, failure: Failure): void => void failed.push({ index, ...failure });

    const users: User[] = [];
    for (const { failure, ...user } of await read(batch, accounts, settings)) {
      const reason = failure ?? (isDone(user) ? undefined : guardFailure(user));
      if (reason !== undefined) fail(user.operation, reason);
      else if (isDone(user)) alreadyApplied.push(user.operation.index);
      else users.push(user);
    }

    // The settings first: the guard asks the account for its facilities as long as there is one. Were the account
    // deleted first and the rest cut off, the next run would ask the settings, and could refuse what this one began.
    const toMark = users.flatMap(({ settings: doc }) => (doc === undefined || isInactive(doc) ? [] : [doc]));
    const marked = await write(
      settings,
      toMark.map((doc) => inactive(doc, context.now())),
      context,
    );
    const isHeld = ({ operation: { id } }: User, judged: JudgedWrite): boolean =>
      judged.failed.has(id) || judged.again.has(id);
    const toDelete = marked.ended ? [] : users.filter((user) => !isHeld(user, marked));
    const hidden = await removeHidden(accounts, toDelete, context);
    const toWrite = hidden.ended ? [] : toDelete.filter((user) => !isHeld(user, hidden));
    const deleted = await write(
      accounts,
      toWrite.flatMap(({ account }) => (account === undefined ? [] : tombstone(account))),
      context,
    );

    const again: number[] = [];
    for (const user of users) {
      const { operation, account } = user;
      const { id, index } = operation;
      const failure = marked.failed.get(id) ?? hidden.failed.get(id) ?? deleted.failed.get(id);
      if (failure !== undefined) fail(operation, failure);
      else if (isHeld(user, marked) || (account !== undefined && !deleted.written.has(id))) again.push(index);
    }
    if (again.length === 0) return { failed, alreadyApplied };
    const error = deleted.error ?? hidden.error ?? marked.error;
    return { failed, alreadyApplied, again: { indexes: again, error } };
  },
});

async function read(
  batch: readonly Operation[],
  accounts: DocumentStore,
  settings: DocumentStore,
): Promise<readonly (User & { readonly failure: Failure | undefined })[]> {
  const ids = batch.map(({ id }) => id).filter(isUserId);
  const [ofAccounts, ofSettings] = [await readRows(accounts, ids), await readRows(settings, ids)];
  return batch.map((operation) => {
    const { id } = operation;
    const failure = isUserId(id) ? (ofAccounts.failed.get(id) ?? ofSettings.failed.get(id)) : noUser;
    const { doc: account, conflicts: hidden = [] } = ofAccounts.rows.get(id) ?? {};
    return { operation, account, hidden, settings: ofSettings.rows.get(id)?.doc, failure };
  });
}

const noUser: Failure = { code: 'invalid_id', reason: `The id of a user is "${prefix}" with a name.` };

function isUserId(id: string): boolean {
  return id.startsWith(prefix) && id.length > prefix.length;
}

/** A write, and its rows. `ended`: something ended it as a whole, and nothing more is to be tried now. */
type Written = JudgedWrite & { readonly ended: boolean };

async function write(store: DocumentStore, docs: readonly Doc[], context: HandlerContext): Promise<Written> {
  if (docs.length === 0) return { ...judgeWrite(docs, { rows: [] }), ended: false };
  const answer = await answerOf(store, docs, context);
  const deleted = new Set(docs.filter((doc) => doc._deleted === true).map(({ _id }) => _id));
  // Of what is to be deleted the server says that it is not there: so it is as wanted.
  const rows = answer.rows.map((row) =>
    !row.ok && row.error === 'not_found' && deleted.has(row.id) ? written(row.id) : row,
  );
  return { ...judgeWrite(docs, { ...answer, rows }), ended: answer.error !== undefined };
}

/** The hidden versions of these accounts. The failed and those to run again keep one: they are not to be deleted now. */
async function removeHidden(
  accounts: DocumentStore,
  users: readonly User[],
  context: HandlerContext,
): Promise<Written> {
  const concerned = users.flatMap(({ account, hidden }) =>
    account === undefined || hidden.length === 0 ? [] : { account, hidden },
  );
  const leaves = new Map(concerned.map(({ account, hidden }) => [account._id, hidden]));
  const answer = await removeLeaves(accounts, leaves, context.fence).then(
    ({ removed, refused, error }): WriteAnswer => ({ rows: [...refused, ...[...removed].map(written)], error }),
    (error: unknown): WriteAnswer => ({ rows: [], error }),
  );
  const docs = concerned.map(({ account }) => account);
  return { ...judgeWrite(docs, answer), ended: answer.error !== undefined };
}

/** Never rejects: what the first write has brought must not be lost because the second one cannot begin. */
async function answerOf(store: DocumentStore, docs: readonly Doc[], context: HandlerContext): Promise<WriteAnswer> {
  try {
    await context.fence();
    return await store.write(docs);
  } catch (error) {
    return { rows: [], error };
  }
}

function written(id: string): WriteRow {
  return { id, ok: true, rev: undefined };
}

function isDone({ account, settings }: User): boolean {
  return account === undefined && (settings === undefined || isInactive(settings));
}

function isInactive(settings: Doc): boolean {
  return ownField(settings, 'inactive') === true;
}

function inactive(settings: Doc, now: number): Doc {
  const date = ownField(settings, 'deletion_date');
  return { ...settings, inactive: true, deletion_date: isNone(date) ? now : date };
}

function tombstone({ _id, _rev }: Doc): Doc {
  return { _id, ...(_rev === undefined ? {} : { _rev }), _deleted: true };
}

/** `guard_mismatch` when the user has a facility outside the operation's list, if it has one. */
function guardFailure({ operation, account, settings }: User): Failure | undefined {
  const { facilities } = operation.content;
  if (facilities === undefined) return undefined;
  const allowed = new Set<unknown>(facilities === null ? [] : [facilities].flat());
  const ofAccount = facilitiesOf(account);
  const own = ofAccount.length > 0 ? ofAccount : facilitiesOf(settings);
  if (own.every((facility) => allowed.has(facility))) return undefined;
  return { code: 'guard_mismatch', reason: 'The user has a facility that is not among those of the operation.' };
}

/** A list, or one text in old documents. */
function facilitiesOf(doc: Doc | undefined): readonly unknown[] {
  const value = ownField(doc, 'facility_id');
  if (isNone(value)) return [];
  return Array.isArray(value) ? (value as unknown[]) : [value];
}
