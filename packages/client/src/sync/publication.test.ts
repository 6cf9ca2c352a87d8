import { beforeEach, describe, expect, it } from 'vitest';
import { defaultEnvironment } from '../environment.js';
import { RetryableError, SignInRequiredError } from '../model/errors.js';
import { applied, failed, nameOf, OutboxBed, TestPlace } from '../outbox/outbox-bed.fixture.js';
import { publicationOf, published } from './publication-bed.fixture.js';
import type { PublicationParts } from './publication.js';

/** A turn of the event loop, not a time. */
const { breathe } = defaultEnvironment();

const down = (): never => {
  throw new RetryableError('down', { class: 'network', code: 'ECONNREFUSED' });
};

describe('the publication of events to one place', () => {
  let bed: OutboxBed;
  let place: TestPlace;
  beforeEach(() => {
    bed = new OutboxBed();
    place = new TestPlace();
  });

  it.each([
    ['throws at once', down, undefined],
    ['rejects', () => Promise.reject(new RetryableError('down', { class: 'network', code: 'x' })), undefined],
    ['rejects with nothing', () => Promise.reject(undefined as unknown as Error), 'TypeError'],
    ['answers in another shape', () => ({ ok: true }) as never, 'TypeError'],
    ['answers nothing', () => undefined as never, 'TypeError'],
    ['has a bug', () => Promise.reject(new RangeError('boom')), 'RangeError'],
  ])('O6 a publisher that %s has taken nothing, and is asked again on the ramp', async (_what, answer, bug) => {
    await bed.tab.done(['a', 'b']);
    const usual = place.answer;
    place.answer = answer;
    const publication = publicationOf(bed.tab, place);
    await published(publication);
    expect(publication.status()).toMatchObject({ state: 'waiting-retry', unpublished: 2, transferred: 0 });
    expect(publication.status().bug?.name).toBe(bug);
    place.answer = usual;
    bed.clock.advance(0);
    await published(publication);
    expect(place.sent).toEqual([
      ['a@1:0', 'b@1:1'],
      ['a@1:0', 'b@1:1'],
    ]);
    expect(publication.status()).toMatchObject({ state: 'idle', unpublished: 0, transferred: 2, bug: undefined });
  });

  it('O6 an id that was never sent, and one that is a conflict too, are not taken', async () => {
    await bed.tab.done(['a', 'b']);
    place.answer = (events) => ({
      accepted: ['s:o:stranger', ...events.map(({ id }) => id)],
      conflicts: events.filter(({ documentId }) => documentId === 'b').map(({ id }) => ({ id, stored: 'other' })),
    });
    const kept: string[] = [];
    const quarantine: PublicationParts['quarantine'] = (conflicts) => {
      kept.push(...conflicts.map(({ event }) => event.documentId));
      return Promise.resolve();
    };
    const publication = publicationOf(bed.tab, place, { quarantine });
    await published(publication);
    // What went to quarantine was not brought over.
    expect(publication.status()).toMatchObject({ unpublished: 0, transferred: 1 });
    expect(kept).toEqual(['b']);
  });

  it('O6 a conflict is taken when both versions are kept, and not before', async () => {
    await bed.tab.done(['a']);
    place.answer = ([event]) => ({ accepted: [], conflicts: [{ id: event?.id ?? '', stored: 'other' }] });
    let isFull = true;
    const kept: unknown[] = [];
    const quarantine: PublicationParts['quarantine'] = async (conflicts) => {
      await breathe();
      if (isFull) down();
      kept.push(...conflicts.map(({ event, stored }) => [nameOf(event), stored]));
    };
    const publication = publicationOf(bed.tab, place, { quarantine });
    await published(publication);
    expect(publication.status()).toMatchObject({ unpublished: 1 });
    isFull = false;
    bed.clock.advance(0);
    await published(publication);
    expect(kept).toEqual([['a@1:0', 'other']]);
    expect(publication.status()).toMatchObject({ unpublished: 0 });
  });

  it('R5 a publisher that never answers does not keep a client from closing, and a late answer counts for nothing', async () => {
    await bed.tab.done(['a']);
    let answerLate: (() => void) | undefined;
    place.answer = ([event]) =>
      new Promise((resolve) => {
        answerLate = () => {
          resolve({ accepted: [event?.id ?? ''] });
        };
      });
    const publication = publicationOf(bed.tab, place);
    publication.poke();
    while (answerLate === undefined) await breathe();
    bed.close();
    await publication.idle();
    answerLate();
    await breathe();
    const again = new TestPlace();
    await published(publicationOf(bed.tab, again, { closed: new AbortController().signal }));
    expect(again.sent).toEqual([['a@1:0']]);
  });

  it('R13 after an answer that stopped early nothing more is sent before the floor that it names', async () => {
    await bed.tab.done(Array.from({ length: 150 }, (_, at) => `d${String(at)}`));
    place.answer = (events) => ({
      accepted: events.slice(0, 10).map(({ id }) => id),
      error: { class: 'throttled', code: '429', notBeforeMs: 120_000 },
    });
    const publication = publicationOf(bed.tab, place);
    await published(publication);
    expect(place.calls).toHaveLength(1);
    expect(publication.status()).toMatchObject({ state: 'waiting-retry', unpublished: 140, transferred: 10 });
    bed.tab.scheduler.wake();
    bed.clock.advance(119_000);
    await published(publication);
    expect(place.calls).toHaveLength(1);
    place.refuse(() => false);
    bed.clock.advance(1_000);
    await published(publication);
    expect(place.sent.flat()).toHaveLength(100 + 140);
    expect(publication.status()).toMatchObject({ state: 'idle', unpublished: 0 });
  });

  it('R12 a place that is not the client’s server and wants a sign-in concerns only its own events', async () => {
    await bed.tab.done(['a']);
    place.answer = () => {
      throw new SignInRequiredError('unauthorized');
    };
    const publication = publicationOf(bed.tab, place);
    await published(publication);
    expect(publication.status()).toMatchObject({
      state: 'waiting-retry',
      lastError: { class: 'auth', code: 'unauthorized' },
    });
  });

  it('O8 a bulk operation of failures alone calls no publisher, and is over', async () => {
    await bed.tab.outcome(await bed.tab.append(['a', 'b']), [failed, failed]);
    const isPushed = (): boolean => false;
    const publication = publicationOf(bed.tab, place, { isPushed });
    await published(publication);
    await bed.tab.done(['c']);
    await published(publication);
    expect(place.sent).toEqual([['c@2:0']]);
  });

  describe('with a push', () => {
    let pushed: Set<string>;
    let isPushed: boolean;
    let asked: number;
    const parts = (): Partial<PublicationParts> => ({
      isPushed: () => isPushed,
      missing: (ids) => {
        asked++;
        return Promise.resolve(new Map([...ids].filter(([id]) => !pushed.has(id))));
      },
    });
    beforeEach(() => {
      pushed = new Set();
      isPushed = false;
      asked = 0;
    });

    it('O8 asks once while the push is behind, and goes on with each of its steps', async () => {
      await bed.tab.done(['a']);
      await bed.tab.done(['b']);
      const publication = publicationOf(bed.tab, place, parts());
      for (let poke = 0; poke < 5; poke++) await published(publication);
      expect([asked, place.calls.length]).toEqual([1, 0]);
      pushed.add('a');
      publication.pushed();
      await published(publication);
      expect(place.sent).toEqual([['a@1:0']]);
      expect(publication.status().unpublished).toBe(1);
    });

    it('O8 R15 a push that rests while the publication is being told that it is behind leaves nothing waiting for it', async () => {
      await bed.tab.done(['a', 'b']);
      // The step of the push ends before the publication has its answer, and there is no other step.
      const { missing } = parts();
      const slow = publicationOf(bed.tab, place, {
        ...parts(),
        missing: async (ids) => {
          const answer = (await missing?.(ids)) ?? new Map<string, string[]>();
          pushed.add('a').add('b');
          slow.pushed();
          return answer;
        },
      });
      await published(slow);
      expect(place.sent).toEqual([]);
      slow.pushRests();
      await published(slow);
      expect(place.sent).toEqual([['a@1:0', 'b@1:1']]);
    });

    it('O8 what the server does not take waits, with the later ones of its document, and holds up nothing else', async () => {
      isPushed = true;
      await bed.tab.done(['a', 'b']);
      await bed.tab.done(['a', 'c']);
      pushed.add('b').add('c');
      const publication = publicationOf(bed.tab, place, parts());
      await published(publication);
      expect(place.sent).toEqual([['b@1:1'], ['c@2:1']]);
      expect(publication.status()).toMatchObject({ unpublished: 2 });
    });

    it('R13 a step of the push does not send again what the place did not take', async () => {
      isPushed = true;
      await bed.tab.done(['a', 'b']);
      pushed.add('a');
      place.refuse(({ documentId }) => documentId === 'a');
      const publication = publicationOf(bed.tab, place, parts());
      await published(publication);
      bed.clock.advance(0);
      await published(publication);
      const before = place.calls.length;
      for (let steps = 0; steps < 5; steps++) {
        publication.pushed();
        await published(publication);
      }
      expect(place.calls).toHaveLength(before);
      pushed.add('b');
      publication.pushed();
      await published(publication);
      expect(place.sent.slice(before)).toEqual([['b@1:1']]);
    });
  });

  describe('in two tabs at once', () => {
    it('S6 neither counts nor holds back what the other has done, whoever writes first', async () => {
      await bed.tab.done(['a', 'b']);
      await bed.tab.done(['a', 'c']);
      const other = bed.open();
      await other.queue.open('s', 0);
      place.refuse(({ documentId, sequence }) => documentId === 'a' && sequence === 1);
      const [mine, theirs] = [publicationOf(bed.tab, place), publicationOf(other, place)];
      mine.poke();
      theirs.poke();
      await Promise.all([mine.idle(), theirs.idle()]);
      place.refuse(() => false);
      for (let minute = 0; minute < 6; minute++) {
        bed.clock.advance(60_000);
        await published(mine);
        await published(theirs);
      }
      expect(mine.status().unpublished).toBe(0);
      const first = new Map<string, number>();
      place.sent.flat().forEach((name, at) => first.has(name) || first.set(name, at));
      expect([...first.keys()].sort()).toEqual(['a@1:0', 'a@2:0', 'b@1:1', 'c@2:1']);
      expect(first.get('a@1:0')).toBeLessThan(first.get('a@2:0') ?? 0);
    });

    it('S6 O8 does not send a later event of a document before one that only the other tab knows of', async () => {
      const first = await bed.tab.append(['x']);
      const other = bed.open();
      await other.queue.open('s', 0);
      await bed.tab.store({ ...first, state: 'running', lease: 'theirs', attempts: 1 });
      await other.queue.headers.refreshOpen();
      const mine = await bed.tab.outcome(await bed.tab.queue.headers.refresh(1), [applied]);
      expect(mine.state).toBe('done');
      await bed.tab.done(['x']);
      await other.queue.headers.loadNew();
      const refresh = async (): Promise<void> => {
        await other.queue.headers.refreshOpen();
      };
      await published(publicationOf(other, place, { refresh }));
      expect(place.sent).toEqual([['x@1:0'], ['x@2:0']]);
    });
  });

  it('O7 a write of its progress that fails leaves nothing held back for ever', async () => {
    await bed.tab.done(['a']);
    await bed.tab.done(['a']);
    place.refuse(({ sequence }) => sequence === 1);
    const publication = publicationOf(bed.tab, place);
    const write = bed.tab.queue.docs.write.bind(bed.tab.queue.docs);
    let writes = 0;
    bed.tab.queue.docs.write = (docs) => (++writes === 2 ? Promise.reject(new Error('gone')) : write(docs));
    await published(publication);
    expect(publication.status().state).toBe('waiting-storage');
    place.refuse(() => false);
    for (let minute = 0; minute < 3; minute++) {
      bed.clock.advance(60_000);
      await published(publication);
    }
    await bed.tab.done(['a']);
    await published(publication);
    expect(place.sent.slice(1)).toEqual([['a@1:0'], ['a@2:0'], ['a@3:0']]);
    expect(publication.status().unpublished).toBe(0);
  });

  it('O8 an event that waited and whose operation has failed since holds back no later one of its document', async () => {
    const first = await bed.tab.done(['a']);
    place.refuse(({ sequence }) => sequence === 1);
    const publication = publicationOf(bed.tab, place);
    await published(publication);
    await bed.tab.outcome({ ...first, cursor: 0 }, [failed]);
    bed.clock.advance(0);
    await published(publication);
    bed.clock.advance(60_000);
    await published(publication);
    await bed.tab.done(['a']);
    await published(publication);
    expect(place.sent.at(-1)).toEqual(['a@2:0']);
    expect(publication.status().unpublished).toBe(0);
  });

  it('R2 what waits is asked about on the ramp, however much of the new is taken meanwhile', async () => {
    await bed.tab.done(['b']);
    place.refuse(({ documentId }) => documentId === 'b');
    const publication = publicationOf(bed.tab, place);
    const times: number[] = [];
    const start = bed.clock.monotonic();
    for (let step = 0; step < 160; step++) {
      const before = place.calls.length;
      await published(publication);
      for (const [first] of place.sent.slice(before))
        if (first === 'b@1:0') times.push((bed.clock.monotonic() - start) / 1000);
      await bed.tab.done([`d${String(step)}`]);
      bed.clock.advance(step === 0 ? 0 : 10_000);
    }
    expect(times).toEqual([0, 0, 60, 180, 360, 600, 900, 1200, 1500]);
  });
});
