import { describe, expect, it } from 'vitest';
import { AfieldError, InvalidRequestError, StoreTooNewError } from '../model/errors.js';
import { couchdbPublisher } from './couchdb-publisher.js';
import { eventDocument } from './event-document.js';
import { httpPublisher } from './http-publisher.js';
import { checkListing } from './listing.js';
import { OutOfOrderFeed } from './out-of-order-feed.fixture.js';
import { readEvents } from './read-events.js';
import { eventOf } from './sample-event.fixture.js';

const url = 'https://couch.example/afield-events';
const thrownBy = (call: () => unknown): unknown => {
  try {
    return call();
  } catch (error) {
    return error;
  }
};

describe('a publisher is refused when it is made', () => {
  it.each([
    [undefined, 'the options must be an object { url, name }'],
    [url, 'the options must be an object { url, name }'],
    [{ url, headers: {} }, 'there is no option `headers` (it may have url, name)'],
    [{}, '`url` must be the whole address of a database'],
    [{ url: 'https://couch.example/' }, '`url` names no database'],
    [{ url: `${url}?secret=1` }, '`url` must end with the name of the database'],
    [{ url: `${url}#secret` }, '`url` must end with the name of the database'],
    [{ url: 'https://ann:secret@couch.example/e' }, '`url` must not hold credentials'],
    [{ url: 'ftp://couch.example/e' }, '`url` must begin with http or https'],
    [{ url, name: 'a b' }, '`name` must be 1 to 64 of A-Z a-z 0-9 _ . -'],
  ])('S9 couchdbPublisher(%j)', (options, words) => {
    const error = thrownBy(() => couchdbPublisher(options as { url: string }));
    expect(error).toBeInstanceOf(AfieldError);
    expect(error).toMatchObject({ code: 'invalid_option' });
    expect(String(error)).toContain(`couchdbPublisher: ${words}`);
    expect(String(error)).not.toContain('secret');
  });

  it.each([
    [undefined, 'the options must be an object { url, name, headers }'],
    [{ url, header: {} }, 'there is no option `header`'],
    [{ url, headers: 'secret' }, '`headers` must be an object, or a function'],
    [{ url, headers: null }, '`headers` must be an object, or a function'],
    [{ url: 'https://ann:secret@in.example/e' }, '`url` must not hold credentials: use `headers`'],
  ])('S9 httpPublisher(%j)', (options, words) => {
    const error = thrownBy(() => httpPublisher(options as { url: string }));
    expect(error).toMatchObject({ code: 'invalid_option' });
    expect(String(error)).toContain(`httpPublisher: ${words}`);
    expect(String(error)).not.toContain('secret');
  });

  it('S9 an endpoint may have a query, and stand at the root', () => {
    expect(httpPublisher({ url: 'https://in.example/?tenant=1' }).name).toBe('http');
  });
});

describe('readEvents', () => {
  const feed = new OutOfOrderFeed();
  it.each([
    [undefined, {}, 'the first argument, the database'],
    [url, {}, 'the first argument, the database'],
    [feed, null, 'the options must be an object { since, limit, patienceMs, now }'],
    [feed, { patienceMs: 'x' }, '`patienceMs` must be milliseconds'],
    [feed, { patienceMs: -1 }, '`patienceMs` must be milliseconds'],
    [feed, { patience: 1 }, 'there is no option `patience`'],
    [feed, { limit: '5' }, '`limit` must be from 1 to 1000'],
    [feed, { now: 5 }, '`now` must be a function'],
  ])('S9 names what is wrong: %#', async (database, options, words) => {
    const call = readEvents(database as OutOfOrderFeed, options as object);
    await expect(call).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(call).rejects.toThrow(`readEvents: ${words}`);
  });

  it('S9 says whose `since` it is', async () => {
    await expect(readEvents(feed, { since: 'x' })).rejects.toThrow('readEvents: `since` must be');
  });

  it('S10 names the event of a newer Afield', async () => {
    const newer = new OutOfOrderFeed();
    const doc = eventDocument(eventOf('p', 1));
    newer.add({ ...doc, v: 2 });
    const call = readEvents(newer);
    await expect(call).rejects.toBeInstanceOf(StoreTooNewError);
    await expect(call).rejects.toThrow(`The event "${doc._id}" has version 2`);
  });
});

it.each([
  [{ foo: 1 }, 'foo', 'foo: is not an option of listEvents (after, limit).'],
  [7, 'options', 'options: must be an object { after, limit }.'],
  [null, 'options', 'options: must be an object { after, limit }.'],
  [{ limit: 0 }, 'limit', 'limit: must be a whole number from 1 to 1000.'],
  [{ after: { sequence: 1 } }, 'after.index', 'after.index: must be a whole number.'],
])('S9 listEvents(%j) names the field, and promises nothing about changes', (given, field, words) => {
  const error = thrownBy(() => checkListing(given));
  expect(error).toBeInstanceOf(InvalidRequestError);
  expect(error).toMatchObject({ message: `Invalid request: ${words}`, issues: [{ field }] });
});
