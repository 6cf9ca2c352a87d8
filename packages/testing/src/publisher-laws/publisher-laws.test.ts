import {
  couchdbPublisher,
  eventDocument,
  httpPublisher,
  readEventDocument,
  RetryableError,
  type Doc,
  type DocumentEvent,
  type Publisher,
} from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Refusal } from '../memory/memory-database.js';
import { MemoryServer } from '../memory-server.js';
import { startEventEndpoint, type EventEndpoint } from './event-endpoint.fixture.js';
import { BrokenPublisherLawError, publisherLawNames, type PublisherLaw } from './laws.js';
import { publisherLaws } from './publisher-laws.js';
import type { PublisherWorld } from './world.js';

const secret = 'a-secret-of-the-app';

function eventsOf(docs: readonly unknown[]): readonly DocumentEvent[] {
  return docs.flatMap((doc) => {
    const reading = readEventDocument(doc as Doc);
    return reading.kind === 'event' ? [reading.event] : [];
  });
}

function memoryWorld(publisherOf: (url: string) => Publisher = (url) => couchdbPublisher({ url })): PublisherWorld {
  const server = new MemoryServer({ users: { ann: secret } });
  const events = server.create('afield-events');
  const refused = new Set<unknown>();
  events.validate = (doc) => (refused.has(doc['_id']) ? new Refusal(403, 'forbidden', secret) : undefined);
  return {
    publisher: publisherOf(server.urlOf('afield-events')),
    stored: () => Promise.resolve(eventsOf(events.changes(0).map(({ id }) => events.read(id)))),
    fetch: server.fetch,
    server: server.urlOf('records'),
    auth: { credentials: () => Promise.resolve({ type: 'basic', username: 'ann', password: secret }) },
    refuse: (id) => refused.add(id),
    secrets: [secret],
  };
}

async function endpointWorld(
  publisherOf: (endpoint: EventEndpoint) => Publisher = ({ url }) =>
    httpPublisher({ url, headers: () => Promise.resolve({ authorization: `Bearer ${secret}` }) }),
): Promise<PublisherWorld> {
  const endpoint = await startEventEndpoint(secret);
  return {
    publisher: publisherOf(endpoint),
    stored: () => Promise.resolve([...endpoint.events]),
    refuse: (id) => endpoint.refused.add(id),
    secrets: [secret],
    dispose: () => endpoint.close(),
  };
}

it.each(publisherLawNames)('O6 the CouchDB publisher keeps the law %s', async (law) => {
  await publisherLaws(memoryWorld, { laws: [law] });
});

it.each(publisherLawNames)('O6 the HTTP publisher keeps the law %s', async (law) => {
  await publisherLaws(() => endpointWorld(), { laws: [law] });
});

describe('against a server', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  beforeAll(async () => {
    server = await serverUnderTest();
    databases = temporaryDatabases(server.url, server.admin);
  });
  afterAll(async () => {
    await databases.dispose();
    await server.close();
  });

  it('O6 the CouchDB publisher keeps the laws; of a real CouchDB, whose feed has no order, all but `in-order`', async () => {
    const laws = publisherLawNames.filter((law) => server.isEmbedded || law !== 'in-order');
    const { username, password } = server.admin;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    await publisherLaws(
      async () => {
        const { url } = await databases.create('events');
        return {
          publisher: couchdbPublisher({ url }),
          stored: async () => {
            const answer = await fetch(`${url}/_changes?include_docs=true`, { headers: { authorization } });
            const { results } = (await answer.json()) as { results: { doc: Doc }[] };
            return eventsOf(results.map(({ doc }) => doc));
          },
          server: url,
          auth: { credentials: () => Promise.resolve({ type: 'basic', username, password }) },
          secrets: [password],
        };
      },
      { laws },
    );
  });
});

describe('a broken publisher', () => {
  async function lawBrokenBy(
    world: () => PublisherWorld | Promise<PublisherWorld>,
    laws?: readonly PublisherLaw[],
  ): Promise<PublisherLaw> {
    const error: unknown = await publisherLaws(world, laws === undefined ? {} : { laws }).catch(
      (reason: unknown) => reason,
    );
    if (error instanceof BrokenPublisherLawError) return error.law;
    throw new Error('no law is broken', { cause: error });
  }

  /** Writes with the suite's database, and makes an answer of the rows. */
  const writing = (answerOf: (rows: readonly { id: string; ok: boolean; error?: string }[]) => string[]) => () =>
    memoryWorld((url) => ({
      name: 'broken',
      publish: async (events, { database }) => {
        const { rows } = await database(url).write(events.map(eventDocument));
        return { accepted: answerOf(rows) };
      },
    }));

  it('O6 that takes every 409 for success is found', async () => {
    const everyConflict = writing((rows) =>
      rows.filter(({ ok, error }) => ok || error === 'conflict').map(({ id }) => id),
    );
    expect(await lawBrokenBy(everyConflict)).toBe('other-content');
  });

  it('O6 that never takes a 409 for success is found', async () => {
    expect(await lawBrokenBy(writing((rows) => rows.filter(({ ok }) => ok).map(({ id }) => id)))).toBe('stored-once');
  });

  it('that accepts without storing is found', async () => {
    const idle: Publisher = {
      name: 'idle',
      publish: (events) => Promise.resolve({ accepted: events.map(({ id }) => id) }),
    };
    expect(await lawBrokenBy(() => memoryWorld(() => idle))).toBe('arrives-whole');
  });

  it('that leaves a field out is found', async () => {
    const shortened = (url: string): Publisher => {
      const whole = couchdbPublisher({ url });
      return {
        ...whole,
        publish: (events, context) =>
          whole.publish(
            events.map((one) => ({ ...one, previous: null })),
            context,
          ),
      };
    };
    expect(await lawBrokenBy(() => memoryWorld(shortened))).toBe('arrives-whole');
  });

  it('that makes an id of its own is found', async () => {
    let made = 0;
    const posting = ({ url }: EventEndpoint): Publisher => ({
      name: 'posting',
      publish: async (events, { fetch }) => {
        for (const event of events) {
          const headers = { authorization: `Bearer ${secret}`, 'idempotency-key': `"${String(made++)}"` };
          await fetch(url, { method: 'POST', headers, body: JSON.stringify(event) });
        }
        return { accepted: events.map(({ id }) => id) };
      },
    });
    expect(await lawBrokenBy(() => endpointWorld(posting))).toBe('stored-once');
    expect(await lawBrokenBy(() => endpointWorld(posting), ['lost-answer'])).toBe('lost-answer');
    expect(await lawBrokenBy(() => endpointWorld(posting), ['two-at-once'])).toBe('two-at-once');
    expect(await lawBrokenBy(() => endpointWorld(posting), ['failure-in-the-middle'])).toBe('failure-in-the-middle');
    expect(await lawBrokenBy(() => endpointWorld(posting), ['no-false-success'])).toBe('no-false-success');
  });

  it('that publishes in another order is found', async () => {
    const reversed = (url: string): Publisher => {
      const inOrder = couchdbPublisher({ url });
      return { ...inOrder, publish: (events, context) => inOrder.publish([...events].reverse(), context) };
    };
    expect(await lawBrokenBy(() => memoryWorld(reversed))).toBe('in-order');
  });

  it('that takes two ids for one is found', async () => {
    const decoding = (url: string): Publisher => {
      const plain = couchdbPublisher({ url });
      const same = (id: string): string => id.replace('%2F', '/');
      return {
        ...plain,
        publish: async (events, context) => {
          const byId = new Map(events.map((event) => [same(event.id), { ...event, id: same(event.id) }]));
          await plain.publish([...byId.values()], context);
          return { accepted: events.map(({ id }) => id) };
        },
      };
    };
    expect(await lawBrokenBy(() => memoryWorld(decoding), ['any-id'])).toBe('any-id');
  });

  it('that forgets what is more than fifty is found', async () => {
    const few = (url: string): Publisher => {
      const plain = couchdbPublisher({ url });
      return { ...plain, publish: (events, context) => plain.publish(events.slice(0, 50), context) };
    };
    expect(await lawBrokenBy(() => memoryWorld(few))).toBe('hundred-at-once');
  });

  it('that gives all up for one refused event is found', async () => {
    const strict = (url: string): Publisher => {
      const plain = couchdbPublisher({ url });
      return {
        ...plain,
        publish: async (events, context) => {
          const answer = await plain.publish(events, context);
          if (answer.error !== undefined) throw new RetryableError('refused');
          return answer;
        },
      };
    };
    expect(await lawBrokenBy(() => memoryWorld(strict))).toBe('no-false-success');
  });

  it('that tells a secret is found', async () => {
    const telling = (url: string): Publisher => ({
      ...couchdbPublisher({ url }),
      publish: (events, context) =>
        couchdbPublisher({ url })
          .publish(events, context)
          .catch((cause: unknown) => {
            throw new RetryableError('It did not work', { cause: new Error(`for ann:${secret}`, { cause }) });
          }),
    });
    expect(await lawBrokenBy(() => memoryWorld(telling))).toBe('no-secrets');
  });

  it('that takes a page for an answer is found', async () => {
    const naive = ({ url }: EventEndpoint): Publisher => ({
      name: 'naive',
      publish: async (events, { fetch }) => {
        const accepted: string[] = [];
        const conflicts: { id: string; stored: unknown }[] = [];
        for (const event of events) {
          const key = `"${encodeURIComponent(event.id)}"`;
          const headers = { authorization: `Bearer ${secret}`, 'idempotency-key': key };
          const { ok, status } = await fetch(url, { method: 'POST', headers, body: JSON.stringify(event) });
          if (ok) accepted.push(event.id);
          if (status === 422) conflicts.push({ id: event.id, stored: undefined });
        }
        const error = { code: 'refused' };
        return { accepted, conflicts, ...(accepted.length < events.length ? { error } : {}) };
      },
    });
    expect(await lawBrokenBy(() => endpointWorld(naive))).toBe('no-false-success');
  });

  it('that names events of another call is found', async () => {
    const talkative = (url: string): Publisher => {
      const plain = couchdbPublisher({ url });
      const publish: Publisher['publish'] = async (events, context) => {
        const { accepted } = await plain.publish(events, context);
        return { accepted: [...accepted, 'an earlier one'] };
      };
      return { ...plain, publish };
    };
    expect(await lawBrokenBy(() => memoryWorld(talkative))).toBe('arrives-whole');
  });

  it('R5 that throws what is taken for a bug is found', async () => {
    const bare = (url: string): Publisher => {
      const plain = couchdbPublisher({ url });
      const publish: Publisher['publish'] = (events, context) =>
        plain.publish(events, context).catch(() => {
          throw new TypeError('Failed to fetch');
        });
      return { ...plain, publish };
    };
    expect(await lawBrokenBy(() => memoryWorld(bare))).toBe('lost-answer');
  });
});
