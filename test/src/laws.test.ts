import { createAction, deleteAction, updateAction, type AnyAction, type Json } from '@afield/client';
import { deleteUser, setContact, setParent } from '@afield/contacts';
import { actionLaws, MemoryServer, type ActionWorld, type BatchSample } from '@afield/testing';
import fc from 'fast-check';
import { describe, it } from 'vitest';

/** Ids that break whoever takes them for more than text. */
const ids = ['p1', 'a/b', '50%', 'a b#c?d', 'a+b', 'café', 'cafe\u0301', 'constructor', 'toString'];
const id = fc.constantFrom(...ids);
const field = fc.string({ maxLength: 8 }).filter((name) => !name.startsWith('_'));
const lineage = fc.letrec<{ level: Json }>((tie) => ({
  level: fc.record(
    {
      _id: fc.constantFrom('d1', 'h1', 'h2', ...ids),
      parent: fc.option(tie('level'), { maxDepth: 4, depthSize: 'small' }) as fc.Arbitrary<Json>,
      note: fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json>,
    },
    { requiredKeys: ['_id'] },
  ),
})).level;
/** The same few lineages come again and again, so that guards and `isApplied` meet what is there. */
const few: Json[] = [null, { _id: 'h1' }, { _id: 'h1', parent: { _id: 'd1' } }, { parent: { _id: 'd1' }, _id: 'h1' }];
const value = fc.oneof(fc.constantFrom(...few), lineage);

const doc = fc
  .tuple(
    fc.dictionary(field, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 }),
    fc.record({ parent: value, contact: value }, { requiredKeys: [] }),
    fc.option(fc.constant({ 'photo.png': { content_type: 'image/png', data: 'aGk=' } })),
  )
  .map(([fields, people, attachments]) => ({
    ...fields,
    ...people,
    ...(attachments === null ? {} : { _attachments: attachments }),
  }));

/** Documents with odd ids, some of them deleted, and operations on most of them, and on some that are not there. */
function samples(operation: fc.Arbitrary<object>): fc.Arbitrary<BatchSample> {
  const documents = fc.uniqueArray(fc.tuple(id, doc, fc.integer({ min: 0, max: 9 })), {
    selector: ([_id]) => _id,
    minLength: 1,
    maxLength: 6,
  });
  const operations = fc.uniqueArray(fc.tuple(id, operation), { selector: ([of]) => of, minLength: 1, maxLength: 6 });
  return fc.record({
    docs: documents.map((all) =>
      all.map(([_id, fields, tenth]) => (tenth === 0 ? { _id, _deleted: true } : { ...fields, _id })),
    ),
    operations: fc
      .tuple(operations, fc.subarray([{ id: '' }, { id: '_odd' }, {}]))
      .map(([all, withoutDocument]) => [
        ...all.map(([of, fields]) => ({ ...fields, id: of })),
        ...withoutDocument.map((odd) => ({ ...all[0]?.[1], ...odd })),
      ]),
  });
}

function changing(name: 'parent' | 'contact'): fc.Arbitrary<object> {
  return fc.record(
    {
      [name]: value,
      [`current_${name}_id`]: fc.option(fc.constantFrom('h1', 'd1', 'p1')),
      [`current_${name}`]: value,
    },
    { requiredKeys: [] },
  );
}

/** What `create` and `update` take: no key `__proto__`, which is refused before anything is queued. */
const fields = fc
  .dictionary(
    fc.oneof(fc.constantFrom('parent', 'contact', 'note', 'constructor', 'toString'), field),
    fc.oneof(value, fc.jsonValue({ maxDepth: 2 }), fc.constant(null)),
    { maxKeys: 3 },
  )
  .filter((all) => !JSON.stringify(all).includes('"__proto__"'));
const patching = fc.record(
  { patch: fields, expected: fc.dictionary(fc.constantFrom('parent', 'contact', 'note'), value, { maxKeys: 1 }) },
  { requiredKeys: ['patch'] },
);

const userId = fc.constantFrom('amber', 'basil', 'café', 'a/b', '__proto__').map((name) => `org.couchdb.user:${name}`);
const facilities = fc.option(fc.oneof(fc.constantFrom('a1', 'a2'), fc.subarray(['a1', 'a2', 'constructor'])));

/** Users: each of these documents says what the server has of one. */
function users(): fc.Arbitrary<BatchSample> {
  const has = fc.constantFrom('account', 'settings', 'both');
  const docs = fc.uniqueArray(fc.record({ _id: userId, has, ofAccount: facilities, ofSettings: facilities }), {
    selector: ({ _id }) => _id,
    minLength: 1,
  });
  const operation = fc.record({ id: userId, facilities }, { requiredKeys: ['id'] });
  return fc.record({
    docs,
    operations: fc.uniqueArray(operation, { selector: ({ id: of }) => of, minLength: 1 }),
  });
}

/** A server with those users. What it has of them afterwards, but for the time of a deletion. */
function worldOfUsers({ docs }: BatchSample): ActionWorld {
  const server = new MemoryServer();
  const databases = [server.create('_users'), server.create('records')] as const;
  for (const { _id, has, ofAccount, ofSettings } of docs) {
    if (has !== 'settings') databases[0].write([{ _id, type: 'user', facility_id: ofAccount }]);
    if (has !== 'account') databases[1].write([{ _id, known: true, facility_id: ofSettings }]);
  }
  const left = databases.map((database) => () => database.ids().map((one) => shown(database.read(one))));
  return { server: server.urlOf('records'), fetch: server.fetch, read: () => left.map((ids) => ids()) };
}

function shown(user: Record<string, unknown> = {}): unknown {
  return { ...user, _rev: Number.parseInt(String(user['_rev']), 10), deletion_date: 'deletion_date' in user };
}

describe('the laws of actions', () => {
  it('R3 R6 delete-user: twice is once, no guard fails on its own effect, no user is written twice', async () => {
    await actionLaws(deleteUser as AnyAction, users(), { runs: 25, world: worldOfUsers });
  }, 30_000);

  it.each<readonly [string, AnyAction, fc.Arbitrary<object>]>([
    ['create', createAction, fc.record({ doc: fields })],
    ['update', updateAction, patching],
    ['delete', deleteAction, fc.constant({})],
    ['set-parent', setParent, changing('parent')],
    ['set-contact', setContact, changing('contact')],
  ])(
    'R3 R6 S8 %s: twice is once, no guard fails on its own effect, nothing is written twice, all else is kept',
    async (_name, action, operation) => {
      await actionLaws(action, samples(operation), { runs: 25 });
    },
    30_000,
  );
});
