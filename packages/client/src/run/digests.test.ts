import { expect, it } from 'vitest';
import { headerId, type Header } from '../queue/stored.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { RetryPolicy } from '../retry/policy.js';
import { rampOfR2 } from '../retry/ramp.js';
import { Scheduler } from '../retry/scheduler.js';
import { Digests } from './digests.js';
import { Order } from './order.js';

const header = (sequence: number, count: number): Header =>
  ({
    _id: headerId(sequence),
    target: 'local',
    lane: null,
    state: 'queued',
    subjects: { digest: String(sequence), count },
  }) as Header;

function stage(stored: (place: { digest: string; count: number }) => Uint32Array | undefined): {
  look: () => Promise<readonly Header[]>;
  asked: string[];
  warned: string[];
  turns: number[];
  follow: (...headers: Header[]) => void;
} {
  const clock = new ManualClock();
  const order = new Order();
  const asked: string[] = [];
  const warned: string[] = [];
  const turns: number[] = [];
  const digests = new Digests({
    order,
    queue: {
      contents: {
        digest: (place) => {
          asked.push(place.digest);
          return Promise.resolve(stored(place));
        },
      },
    },
    clock,
    scheduler: new Scheduler(clock, () => 0),
    policy: new RetryPolicy(rampOfR2, 0, () => 0),
    closed: new AbortController().signal,
    breathe: () => {
      turns.push(order.learned);
      return Promise.resolve();
    },
    warn: (line) => warned.push(line),
    poke: () => undefined,
  });
  return {
    asked,
    warned,
    turns,
    follow: (...headers) => {
      order.follow(headers);
    },
    look: async () => {
      const { unknown } = order.choose('local', () => false);
      digests.attend(unknown);
      await digests.idle();
      return unknown;
    },
  };
}

it('R17 what cannot be made out any more counts as everything, is told once and not read again', async () => {
  const { look, asked, warned, follow } = stage(() => undefined);
  follow(header(1, 300), header(2, 300));
  for (let times = 0; times < 3; times++) expect(await look()).toHaveLength(2);
  expect(asked).toEqual(['1']);
  expect(warned).toHaveLength(1);
});

it('R17 what has no room in memory counts as everything until others are at their end', async () => {
  const { look, asked, follow } = stage(({ digest, count }) =>
    Uint32Array.from({ length: count }, (_, at) => Number(digest) * 1_000_000 + at),
  );
  const headers = [1, 2, 3].map((sequence) => header(sequence, 200_000));
  follow(...headers);
  for (let times = 0; times < 4; times++) await look();
  expect(asked).toEqual(['1', '2']);
  follow(...headers.map((one, at): Header => (at === 0 ? { ...one, state: 'done' } : one)));
  // The first look after its end lets it go, the second one reads.
  for (let times = 0; times < 2; times++) await look();
  expect(asked).toEqual(['1', '2', '3']);
});

it('the page gets its turns while many are taken in, and when they go', async () => {
  const { look, turns, follow } = stage(({ count }) => Uint32Array.from({ length: count }, (_, at) => at));
  const headers = [header(1, 20_000), header(2, 300)] as const;
  follow(...headers);
  await look();
  expect(turns).toHaveLength(4);
  follow({ ...headers[0], state: 'done' }, headers[1]);
  await look();
  expect(turns).toHaveLength(8);
});
