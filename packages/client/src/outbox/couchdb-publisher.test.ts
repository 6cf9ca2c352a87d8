import { describe, expect, it } from 'vitest';
import type { AuthOptions } from '../model/client.js';
import { AfieldError, RetryableError, SignInRequiredError } from '../model/errors.js';
import type { DocumentEvent, PublishAnswer } from '../model/event.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { couchdbPublisher } from './couchdb-publisher.js';
import { eventDocument } from './event-document.js';
import { standalonePublishContext } from './publish-context.js';
import { eventOf } from './sample-event.fixture.js';

const url = 'http://couch.test/afield-events';
const [a, b, c] = [eventOf('a', 1), eventOf('b', 1), eventOf('c', 1)];

const auth: AuthOptions = {
  credentials: () => Promise.resolve({ type: 'basic', username: 'ann', password: 'secret' }),
};
const asAnn = { json: { userCtx: { name: 'ann' } } };

/** Publishes against a server that answers each request with what `answers` has for the end of its path. */
async function publishTo(
  answers: Readonly<Record<string, { status?: number; json: unknown }>>,
  events: readonly DocumentEvent[],
): Promise<{ answer: PublishAnswer; asked: string[] }> {
  const asked: string[] = [];
  const fetch: typeof globalThis.fetch = (input) => {
    const path = new URL(String(input as string)).pathname.replace(/^.*\//, '');
    asked.push(path);
    const { status = 200, json } = answers[path] ?? { status: 404, json: {} };
    return Promise.resolve(new Response(JSON.stringify(json), { status }));
  };
  const context = standalonePublishContext({
    fetch,
    clock: new ManualClock(),
    server: 'http://couch.test/records',
    auth,
  });
  return { answer: await couchdbPublisher({ url }).publish(events, context), asked };
}
const row = (event: DocumentEvent, error?: string): object =>
  error === undefined ? { id: event.id, ok: true, rev: '1-x' } : { id: event.id, error, reason: 'a reason' };
const stored = (event: DocumentEvent, fields: object = {}): object => ({
  key: event.id,
  value: { rev: '1-x' },
  doc: { ...eventDocument(event), ...fields, _rev: '1-x' },
});
const deleted = (event: DocumentEvent): object => ({ key: event.id, value: { rev: '2-x', deleted: true }, doc: null });
const missing = (event: DocumentEvent): object => ({ key: event.id, error: 'not_found' });

describe('the CouchDB publisher', () => {
  it('R10 matches rows by id, never by position', async () => {
    const { answer } = await publishTo({ _bulk_docs: { json: [row(c), row(a, 'too_large'), row(b)] } }, [a, b, c]);
    expect([...answer.accepted].sort()).toEqual([b.id, c.id].sort());
  });

  it('R12 an event that is forbidden to the user waits; to someone else it is a matter of signing in', async () => {
    const rows = { json: [row(a, 'forbidden'), row(b)] };
    const ours = await publishTo({ _bulk_docs: rows, _session: asAnn }, [a, b]);
    expect(ours.answer).toEqual({ accepted: [b.id], conflicts: [], error: { class: 'server', code: 'forbidden' } });
    const noOne = await publishTo({ _bulk_docs: rows, _session: { json: { userCtx: { name: null } } } }, [a, b]);
    expect(noOne.answer).toMatchObject({ accepted: [b.id], error: { class: 'auth', code: 'unauthorized' } });
  });

  it('O6 takes a 409 for success only where the stored content is the same', async () => {
    const { answer, asked } = await publishTo(
      {
        _bulk_docs: { json: [row(a, 'conflict'), row(b, 'conflict'), row(c)] },
        _all_docs: { json: { rows: [stored(a), stored(b, { rev: '7-other' })] } },
      },
      [a, b, c],
    );
    expect([...answer.accepted].sort()).toEqual([a.id, c.id].sort());
    expect(answer.conflicts).toEqual([{ id: b.id, stored: { ...eventDocument(b), rev: '7-other' } }]);
    expect(answer.error).toBeUndefined();
    expect(asked).toEqual(['_bulk_docs', '_all_docs']);
  });

  it.each([
    ['was deleted', deleted],
    ['is not to be found', missing],
  ])('O6 an event in conflict that %s since is not accepted: silence is not success', async (_what, found) => {
    const { answer } = await publishTo(
      { _bulk_docs: { json: [row(a, 'conflict'), row(b)] }, _all_docs: { json: { rows: [found(a)] } } },
      [a, b],
    );
    expect(answer).toEqual({ accepted: [b.id], conflicts: [], error: { class: 'conflict', code: 'conflict' } });
  });

  it('R7 a row that got no answer is not accepted, and one of another document is nothing', async () => {
    const { answer } = await publishTo({ _bulk_docs: { json: [row(a), row(eventOf('z', 1))] } }, [a, b]);
    expect(answer).toMatchObject({ accepted: [a.id], error: { class: 'network', code: 'short-answer' } });
  });

  it('R11 an event that the database refuses waits, with the code; the others are accepted', async () => {
    const { answer } = await publishTo({ _bulk_docs: { json: [row(a, 'doc_validation'), row(b)] } }, [a, b]);
    expect(answer).toEqual({ accepted: [b.id], conflicts: [], error: { class: 'server', code: 'invalid_doc' } });
  });

  it('R12 a row `unauthorized` is a matter of signing in', async () => {
    const { answer } = await publishTo({ _bulk_docs: { json: [row(a, 'unauthorized'), row(b)] } }, [a, b]);
    expect(answer).toMatchObject({ accepted: [b.id], error: { class: 'auth', code: 'unauthorized' } });
  });

  it('R8 what was accepted before the read of the conflicts failed is not lost', async () => {
    const { answer } = await publishTo(
      {
        _bulk_docs: { json: [row(a, 'conflict'), row(b)] },
        _all_docs: { status: 503, json: { error: 'busy', reason: 'busy' } },
      },
      [a, b],
    );
    expect(answer).toMatchObject({ accepted: [b.id], error: { class: 'server', code: '503' } });
  });

  it('R12 a database that is missing, or closed to the user, is thrown as what may pass', async () => {
    const gone = { _bulk_docs: { status: 404, json: { error: 'not_found', reason: 'no db' } } };
    await expect(publishTo(gone, [a])).rejects.toMatchObject({ code: 'database-missing' });
    const closed = { _bulk_docs: { status: 403, json: { error: 'forbidden', reason: 'not you' } } };
    await expect(publishTo(closed, [a])).rejects.toBeInstanceOf(RetryableError);
    const unknown = { _bulk_docs: { status: 401, json: { error: 'unauthorized', reason: 'who' } } };
    await expect(publishTo(unknown, [a])).rejects.toBeInstanceOf(SignInRequiredError);
  });

  it('R12 what another server thinks of the credentials concerns only the events there', async () => {
    const statuses = [401, 407, 403, 200];
    const context = standalonePublishContext({
      fetch: () => {
        const status = statuses.shift() ?? 500;
        const body = status === 200 ? [row(a)] : { error: 'no', reason: 'not known here' };
        return Promise.resolve(new Response(JSON.stringify(body), { status }));
      },
      clock: new ManualClock(),
      server: 'http://own.test/records',
      auth,
    });
    const { publish } = couchdbPublisher({ url });
    for (const code of ['unauthorized', 'proxy-unauthorized', 'forbidden']) {
      const error: unknown = await publish([a], context).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RetryableError);
      expect(error).toMatchObject({ class: 'auth', code });
    }
    // Signed in as before: nothing was refused, and no one was asked.
    expect(await publish([a], context)).toMatchObject({ accepted: [a.id] });
  });

  it('S9 refuses an address or a name that cannot be meant, without showing it', () => {
    for (const options of [{ url: 'http://ann:secret@couch.test/e' }, { url: 'secret' }, { url, name: 'a secret' }]) {
      let error: unknown;
      try {
        couchdbPublisher(options);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(AfieldError);
      expect(error).toMatchObject({ code: 'invalid_option' });
      expect(String(error)).not.toContain('secret');
    }
  });
});
