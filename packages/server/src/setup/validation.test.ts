import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { validationText } from './validation-text.js';

type Doc = Record<string, unknown>;
type Validate = (doc: Doc, old: Doc | null, user: { name: string | null; roles: string[] }, security: object) => void;

const validate = (text: string): Validate => runInNewContext(`(${text})`) as Validate;
const shared = validate(validationText('results'));
const device = { name: 'ann', roles: ['afield-device'] };
const own = { _id: 'result:s1:b1', type: 'afield-result', store: 's1', user: 'ann' };

/** Why it is refused; undefined when it is not. */
function refusal(
  how: Validate,
  doc: Doc,
  old: Doc | null = null,
  user: Parameters<Validate>[2] = device,
  security = {},
) {
  try {
    how(doc, old, user, security);
    return undefined;
  } catch (error) {
    return error as { forbidden?: string; unauthorized?: string };
  }
}

describe('the validation of results that devices share', () => {
  it.each([
    ['a result', own],
    ['failures', { ...own, _id: 'failures:s1:b1:0', type: 'afield-failures', operations: [] }],
    ['the device itself', { ...own, _id: 'device:s1', type: 'afield-device' }],
  ])('S1 a device writes %s of its own, and again', (_, doc) => {
    expect(refusal(shared, doc)).toBeUndefined();
    const there = { ...doc, _rev: '1-a' };
    expect(refusal(shared, { ...there, changes: 2 }, there)).toBeUndefined();
  });

  it.each([
    ['that another user has written', own, { ...own, user: 'bob' }, /another user/],
    ['that nobody is known to have written', own, { ...own, user: undefined }, /another user/],
    ['in the name of another user', { ...own, user: 'bob' }, null, /field user/],
    ['without a user', { ...own, user: undefined }, null, /field user/],
    ['as a deletion', { _id: own._id, _deleted: true }, own, /Only an admin removes/],
    ['of another store than its id says', { ...own, store: 's2' }, null, /does not fit/],
    ['whose id only begins like the store', { ...own, _id: 'result:s11:b1' }, null, /does not fit/],
    ['of a type that its id does not have', { ...own, type: 'afield-device' }, null, /does not fit/],
    ['beside what is there, by replication', { ...own, _rev: '1-b' }, null, /new_edits/],
    ['above what is there, by replication', { ...own, _rev: '2-b' }, { ...own, _rev: '1-a' }, /new_edits/],
    ['without a store', { ...own, store: '' }, null, /store is missing/],
    ['that is none', { _id: 'x', type: 'person', user: 'ann' }, null, /no result/],
    ['with a reason, which may hold content', { ...own, operations: [{}, { reason: 'x' }] }, null, /is shared/],
    ['with content', { ...own, operations: [{ content: { phone: '1' } }] }, null, /is shared/],
    ['with an attachment', { ...own, _attachments: {} }, null, /no attachments/],
  ])('S1 a device writes no result %s', (_, doc, old, reason) => {
    expect(refusal(shared, doc, old)?.forbidden).toMatch(reason);
  });

  it('S1 a result that an admin has removed may be written again', () => {
    expect(refusal(shared, own, { _id: own._id, _deleted: true })).toBeUndefined();
  });

  it('S1 who is no device writes nothing, a supervisor neither', () => {
    expect(refusal(shared, own, null, { name: null, roles: [] })?.unauthorized).toMatch(/sign in/);
    expect(refusal(shared, own, null, { name: 'ann', roles: ['afield-supervisor'] })?.forbidden).toMatch(/role/);
  });

  it('S1 admins of the server and of the database mend what they like', () => {
    expect(refusal(shared, { _id: 'x', _deleted: true }, own, { name: 'root', roles: ['_admin'] })).toBeUndefined();
    const security = { admins: { names: ['eve'], roles: ['mender'] } };
    expect(refusal(shared, { _id: 'x' }, own, { name: 'eve', roles: [] }, security)).toBeUndefined();
    expect(refusal(shared, { _id: 'x' }, own, { name: 'may', roles: ['mender'] }, security)).toBeUndefined();
    expect(refusal(shared, { _id: 'x' }, own, { name: 'ann', roles: [] }, security)?.forbidden).toMatch(/role/);
  });
});

describe('the validation of one user’s database', () => {
  const name = 'an"n\u2028\\é';
  const single = validate(validationText('results', name));
  const owner = { name, roles: [] };

  it('S1 lets its user write, with or without a name in the document, and nobody else', () => {
    expect(refusal(single, { ...own, user: undefined }, null, owner)).toBeUndefined();
    expect(refusal(single, { ...own, user: name }, null, owner)).toBeUndefined();
    const operations = [{ reason: 'x', content: {} }];
    expect(refusal(single, { ...own, user: name, operations }, null, owner)).toBeUndefined();
    expect(refusal(single, own, null, owner)?.forbidden).toMatch(/somebody else/);
    expect(refusal(single, own, null, device)?.forbidden).toMatch(/Only the user/);
    expect(refusal(single, own, null, { name: 's', roles: ['afield-supervisor'] })?.forbidden).toMatch(/Only the user/);
  });
});

describe('the validation of events', () => {
  const events = validate(validationText('events'));
  const event = { _id: 'e1', name: 'documents.new.person', store: 's1' };

  it('S1 lets a device add an event, and change or remove none', () => {
    expect(refusal(events, event)).toBeUndefined();
    expect(refusal(events, { ...event, index: 1 }, event)?.forbidden).toMatch(/never changed/);
    expect(refusal(events, { _id: 'e1', _deleted: true }, event)?.forbidden).toMatch(/never changed/);
    expect(refusal(events, { _id: 'e1', name: 'other' })?.forbidden).toMatch(/no event/);
    expect(refusal(events, event, null, { name: 's', roles: ['afield-supervisor'] })?.forbidden).toMatch(/role/);
  });
});

it('S1 the validation is ASCII and has nothing newer than ES5', () => {
  for (const text of [validationText('results', 'é\u2028'), validationText('events'), validationText('results')]) {
    // eslint-disable-next-line no-control-regex
    expect(text).toMatch(/^[\x00-\x7f]+$/);
    expect(text).not.toMatch(/=>|\b(let|const|class)\b|`/);
  }
});
