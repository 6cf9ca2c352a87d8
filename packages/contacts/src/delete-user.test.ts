import {
  RetryableError,
  type Doc,
  type DocumentStore,
  type HandlerContext,
  type WriteAnswer,
  type WriteRow,
} from '@afield/client';
import { describe, expect, it } from 'vitest';
import { deleteUser } from './delete-user.js';

const id = 'org.couchdb.user:amber';

/** A store of one document or none, that notes what is written. */
function storeOf(doc: object | undefined, conflicts?: string[]): DocumentStore & { readonly written: Doc[] } {
  const written: Doc[] = [];
  return {
    written,
    read: (ids) =>
      Promise.resolve(
        ids.map((one) =>
          doc === undefined
            ? { id: one, rev: undefined, deleted: false, doc: undefined }
            : {
                id: one,
                rev: '1-a',
                deleted: false,
                doc: { ...doc, _id: one, _rev: '1-a' },
                ...(conflicts && { conflicts }),
              },
        ),
      ),
    write: (docs) => {
      written.push(...docs);
      return Promise.resolve({ rows: docs.map(({ _id }) => ({ id: _id, ok: true, rev: '2-b' })) });
    },
    readRevisions: () => Promise.resolve([]),
  };
}

async function run(given: {
  account?: object;
  /** Versions of the account that lost a conflict. */
  hidden?: string[];
  settings?: object;
  /** What the server answers to the write of the account, and whether the second fence fails. */
  ofAccount?: WriteAnswer;
  lost?: Error;
  facilities?: string | string[] | null;
}) {
  const [accounts, documents] = [storeOf(given.account, given.hidden), storeOf(given.settings)];
  const order: string[] = [];
  const noting = (name: string, store: DocumentStore): DocumentStore => ({
    ...store,
    write: (docs) => {
      order.push(name);
      return name === 'account' && given.ofAccount !== undefined ? Promise.resolve(given.ofAccount) : store.write(docs);
    },
  });
  const context = {
    server: { documents: noting('settings', documents), database: () => noting('account', accounts) },
    fence: () => {
      order.push('fence');
      return given.lost !== undefined && order.length > 1 ? Promise.reject(given.lost) : Promise.resolve();
    },
    now: () => 1234,
  } as unknown as HandlerContext;
  const content = given.facilities === undefined ? {} : { facilities: given.facilities };
  const result = await deleteUser.run([{ id, key: 'k', index: 7, content }], context);
  return { result, order, account: accounts.written, settings: documents.written };
}

describe('R6 delete-user', () => {
  it('writes the settings first and the account last, each behind the fence', async () => {
    const { result, order, account, settings } = await run({ account: {}, settings: { facility_id: 'a1' } });
    expect(order).toEqual(['fence', 'settings', 'fence', 'account']);
    expect(account).toEqual([{ _id: id, _rev: '1-a', _deleted: true }]);
    expect(settings).toEqual([{ _id: id, _rev: '1-a', facility_id: 'a1', inactive: true, deletion_date: 1234 }]);
    expect(result).toEqual({ failed: [], alreadyApplied: [] });
  });

  it.each([
    ['nothing is there', {}],
    ['the settings are inactive', { settings: { inactive: true } }],
    ['the settings are inactive, and outside the list', { settings: { inactive: true, facility_id: 'b' } }],
  ])('is done already when there is no account and %s', async (_what, given) => {
    const { result, order } = await run({ ...given, facilities: ['a'] });
    expect(result).toEqual({ failed: [], alreadyApplied: [7] });
    expect(order).toEqual([]);
  });

  it.each([['yes'], [1], [null], [undefined]])('%j is not inactive', async (inactive) => {
    const { settings } = await run({ settings: { inactive } });
    expect(settings).toMatchObject([{ inactive: true }]);
  });

  it.each([
    [5, 5],
    ['2020-01-01', '2020-01-01'],
    [null, 1234],
  ])('a deletion_date of %j becomes %j', async (before, after) => {
    const { settings } = await run({ settings: { deletion_date: before } });
    expect(settings).toMatchObject([{ deletion_date: after }]);
  });

  it.each<[string, string | string[] | null, object | undefined, object | undefined, boolean]>([
    ['inside', ['a', 'b'], { facility_id: ['a'] }, undefined, true],
    ['one outside', ['a'], { facility_id: ['a', 'b'] }, undefined, false],
    ['text on both sides', 'a', { facility_id: 'a' }, undefined, true],
    ['text outside', 'a', { facility_id: 'b' }, undefined, false],
    ['the account comes before the settings', ['a'], { facility_id: 'a' }, { facility_id: 'b' }, true],
    ['an account outside, settings inside', ['a'], { facility_id: 'b' }, { facility_id: 'a' }, false],
    ['an account without any', ['a'], { facility_id: [] }, { facility_id: 'b' }, false],
    ['an account with null', ['a'], { facility_id: null }, { facility_id: 'b' }, false],
    ['no account', ['a'], undefined, { facility_id: 'b' }, false],
    ['no facility at all', ['a'], {}, {}, true],
    ['an empty list of the operation', [], { facility_id: 'a' }, undefined, false],
    ['null, and there is one', null, { facility_id: 'a' }, undefined, false],
    ['null, and the settings have one', null, {}, { facility_id: ['a'] }, false],
    ['null, and there is none', null, { facility_id: [] }, { facility_id: null }, true],
    ['what is no text', ['1'], { facility_id: [1] }, undefined, false],
    ['names of members of every object', ['a'], { facility_id: ['constructor'] }, undefined, false],
    ['such names in the list', ['__proto__', 'constructor'], { facility_id: ['__proto__'] }, undefined, true],
  ])('guards by facilities: %s', async (_what, facilities, account, settings, passes) => {
    const { result, order } = await run({
      facilities,
      ...(account === undefined ? {} : { account }),
      ...(settings === undefined ? {} : { settings }),
    });
    expect(result.failed?.map(({ index, code }) => [index, code])).toEqual(passes ? [] : [[7, 'guard_mismatch']]);
    expect(order.length > 0).toBe(passes);
  });

  it('S8 hidden versions of the account go before it, one in a write, each behind the fence', async () => {
    const { result, order, account } = await run({ account: {}, hidden: ['1-h', '1-i'], settings: { inactive: true } });
    expect(order).toEqual(['fence', 'account', 'fence', 'account', 'fence', 'account']);
    expect(account.map(({ _rev, _deleted }) => [_rev, _deleted])).toEqual([
      ['1-h', true],
      ['1-i', true],
      ['1-a', true],
    ]);
    expect(result).toEqual({ failed: [], alreadyApplied: [] });
  });

  it.each<[string, WriteAnswer, object]>([
    [
      'is refused',
      { rows: [{ id, ok: false, error: 'forbidden', reason: 'not you' }] },
      { failed: [{ index: 7, code: 'forbidden', reason: 'not you' }] },
    ],
    [
      'is no leaf any more',
      { rows: [{ id, ok: false, error: 'conflict', reason: 'x' }] },
      { failed: [], again: { indexes: [7], error: { class: 'conflict' } } },
    ],
    [
      'got no answer',
      { rows: [], error: new RetryableError('cut', { class: 'network' }) },
      { failed: [], again: { indexes: [7], error: { class: 'network' } } },
    ],
  ])('S8 the account stays while a hidden version of it %s', async (_what, ofAccount, expected) => {
    const { result, order } = await run({ account: {}, hidden: ['1-h'], ofAccount });
    expect(order).toEqual(['fence', 'account']);
    expect(result).toMatchObject(expected);
  });

  it('S8 the account stays when the lead is lost before its hidden version goes', async () => {
    const { result, account } = await run({
      account: {},
      settings: {},
      hidden: ['1-h'],
      lost: new RetryableError('lost'),
    });
    expect(account).toEqual([]);
    expect(result).toMatchObject({ again: { indexes: [7], error: { message: 'lost' } } });
  });

  it('R9 an account in conflict, or without an answer, is named to run again, and why', async () => {
    const conflict: WriteRow = { id, ok: false, error: 'conflict', reason: 'x' };
    const { result } = await run({ account: {}, settings: {}, ofAccount: { rows: [conflict] } });
    expect(result).toMatchObject({
      failed: [],
      alreadyApplied: [],
      again: { indexes: [7], error: { code: 'conflict' } },
    });
    const short = await run({ account: {}, ofAccount: { rows: [] } });
    expect(short.result.again).toMatchObject({ indexes: [7], error: { code: 'short-answer' } });
    const lost = new RetryableError('the store has died');
    const cut = await run({ account: {}, settings: {}, lost });
    expect(cut.order).toEqual(['fence', 'settings', 'fence']);
    expect(cut.result.again).toEqual({ indexes: [7], error: lost });
  });

  it('an account that the server does not find when it is to be deleted is gone', async () => {
    const notFound: WriteRow = { id, ok: false, error: 'not_found', reason: 'deleted' };
    const { result } = await run({ account: {}, ofAccount: { rows: [notFound] } });
    expect(result).toEqual({ failed: [], alreadyApplied: [] });
  });

  it('keeps a field of any name in the settings', async () => {
    const odd = JSON.parse('{"__proto__":{"polluted":1},"constructor":"x"}') as object;
    const { settings } = await run({ settings: odd });
    expect(JSON.stringify(settings[0])).toContain('"__proto__":{"polluted":1}');
    expect({}).not.toHaveProperty('polluted');
  });

  it.each([[{ facilities: 5 }], [{ facilities: [1] }], [{ facilities: [null] }], [{ facility: 'a' }]])(
    'refuses %j when it is queued',
    (fields) => {
      expect(deleteUser.operation['~standard'].validate(fields)).toHaveProperty('issues');
    },
  );

  it.each([[{}], [{ facilities: 'a' }], [{ facilities: ['a'] }], [{ facilities: [] }], [{ facilities: null }]])(
    'takes %j, as it is',
    (fields) => {
      expect(deleteUser.operation['~standard'].validate(fields)).toEqual({ value: fields });
    },
  );
});
