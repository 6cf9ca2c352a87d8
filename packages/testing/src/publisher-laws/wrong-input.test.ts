import type { DocumentEvent, PublishAnswer, Publisher } from '@afield/client';
import { describe, expect, it } from 'vitest';
import { BrokenPublisherLawError } from './laws.js';
import { publisherLaws, type PublisherLawsOptions } from './publisher-laws.js';
import type { PublisherWorld } from './world.js';

const world = (publish: (events: readonly DocumentEvent[]) => unknown): (() => PublisherWorld) => {
  return () => ({
    publisher: { name: 'odd', publish: (events) => Promise.resolve(publish(events) as PublishAnswer) },
    stored: () => Promise.resolve([]),
  });
};
const idle: Publisher = { name: 'idle', publish: () => Promise.resolve({ accepted: [] }) };
const stored = (): Promise<[]> => Promise.resolve([]);

describe('publisherLaws', () => {
  it.each([
    [{ laws: ['nope'] }, 'there is no law "nope" (there are arrives-whole, stored-once'],
    [{ laws: [] }, '`laws` is empty'],
    [{ law: ['any-id'] }, 'there is no option `law` (it may have laws)'],
    [null, 'the options must be an object { laws }'],
  ])('S9 refuse options that would leave something unchecked: %#', async (options, words) => {
    const call = publisherLaws(() => ({ publisher: idle, stored }), options as PublisherLawsOptions);
    await expect(call).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(call).rejects.toThrow(`publisherLaws: ${words}`);
  });

  it.each([
    [undefined, '`world`, must be a function'],
    [{}, '`world`, must be a function'],
    [() => undefined, '`world` must give an object { publisher, stored }'],
    [() => ({ stored }), 'has no `publisher`'],
    [() => ({ publisher: {}, stored }), '`publisher.name`'],
    [() => ({ publisher: { name: 'x' }, stored }), '`publisher.publish`'],
    [() => ({ publisher: idle }), 'has no function `stored`'],
    [() => ({ publisher: idle, stored, failNext: true }), '`failNext` of the world must be a function'],
  ])('S9 name what is missing in a world: %#', async (given, words) => {
    const call = publisherLaws(given as () => PublisherWorld);
    await expect(call).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(call).rejects.toThrow(words);
  });

  it.each([
    [undefined, '`publish` answers undefined: it must resolve with { accepted, conflicts?, error? }'],
    [[], '`publish` answers a list'],
    [{}, 'without `accepted`'],
    [{ accepted: [{}] }, 'without `accepted`'],
    [{ accepted: [], conflicts: [{ event: 1 }] }, '`conflicts` of the answer must be a list of { id, stored }'],
    [{ accepted: [], error: 'x' }, '`error` of the answer must be'],
  ])('S9 name the shape of an answer that is none: %#', async (answer, words) => {
    const call = publisherLaws(world(() => answer));
    await expect(call).rejects.toBeInstanceOf(BrokenPublisherLawError);
    await expect(call).rejects.toThrow(words);
  });

  it('S9 say that RetryableError is what may pass', async () => {
    const throwing = world(() => {
      throw new Error('disk is full');
    });
    await expect(publisherLaws(throwing)).rejects.toThrow('throw RetryableError for what may pass');
  });

  it('S9 ask for `failNext` where the faults of the suite reach nothing', async () => {
    const fileLike = (): PublisherWorld => {
      const events = new Map<string, DocumentEvent>();
      return {
        publisher: {
          name: 'file',
          publish: (given) => {
            for (const event of given) events.set(event.id, events.get(event.id) ?? event);
            return Promise.resolve({ accepted: given.map(({ id }) => id) });
          },
        },
        stored: () => Promise.resolve([...events.values()]),
      };
    };
    for (const law of ['lost-answer', 'no-false-success', 'failure-in-the-middle', 'no-secrets'] as const) {
      await expect(publisherLaws(fileLike, { laws: [law] })).rejects.toThrow('give `failNext` in the world');
    }
    await publisherLaws(fileLike, { laws: ['arrives-whole', 'in-order'] });
  });
});
