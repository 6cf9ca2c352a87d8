import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endStates, type BulkOperationState, type Target } from '../model/states.js';
import { headerId, sequenceOf, type Header } from '../queue/stored.js';
import { inHeader, subjectsOf } from '../queue/subjects.js';
import { Order, type Choice } from './order.js';

const hashed = (ids: readonly string[]): Promise<ReadonlySet<number> | null> =>
  subjectsOf(ids, () => Promise.resolve());

async function header(sequence: number, more: Partial<Header> & { ids?: readonly string[] } = {}): Promise<Header> {
  const { ids = [`d${String(sequence)}`], ...rest } = more;
  return {
    _id: headerId(sequence),
    target: 'local',
    lane: null,
    state: 'queued',
    subjects: inHeader(await hashed(ids), `d:${String(sequence)}:`),
    ...rest,
  } as Header;
}
const all = (...headers: Promise<Header>[]): Promise<Header[]> => Promise.all(headers);
const nth = (found: Header | undefined): number | undefined =>
  found === undefined ? undefined : Number(found._id.slice(2));
const except =
  (...waiting: number[]) =>
  (_header: Header, sequence: number): boolean =>
    !waiting.includes(sequence);
const pick = (headers: readonly Header[], target: Target, mayRun: Parameters<Order['choose']>[1]): Choice['next'] => {
  const order = new Order();
  order.follow(headers);
  return order.choose(target, mayRun).next;
};
const many = Array.from({ length: 1000 }, (_, at) => `m${String(at)}`);
const learnFrom = async (order: Order, found: Header, ids: readonly string[]): Promise<void> => {
  order.learn(found, Uint32Array.from((await hashed(ids)) ?? []));
  order.work(Infinity);
};

describe('what runs next', () => {
  it('R17 is the first one that may', async () => {
    expect(nth(pick(await all(header(1), header(2)), 'local', except()))).toBe(1);
    expect(nth(pick(await all(header(1), header(2)), 'local', except(1)))).toBe(2);
  });

  it('R17 a waiting one holds back only later ones that share a subject or a lane', async () => {
    const headers = await all(
      header(1, { ids: ['a', 'b'], lane: 'x' }),
      header(2, { ids: ['b'] }),
      header(3, { ids: ['c'], lane: 'x' }),
      header(4, { ids: ['d'] }),
    );
    expect(nth(pick(headers, 'local', except(1)))).toBe(4);
  });

  it('R17 one that is held back holds back in turn', async () => {
    const headers = await all(
      header(1, { ids: ['a'] }),
      header(2, { ids: ['a', 'b'] }),
      header(3, { ids: ['b'] }),
      header(4),
    );
    expect(nth(pick(headers, 'local', except(1)))).toBe(4);
  });

  it('R17 ended ones hold back nothing', async () => {
    const ended = (['done', 'done-with-failures', 'failed', 'cancelled'] as const).map((state, at) =>
      header(at + 1, { ids: ['a'], state }),
    );
    expect(nth(pick(await all(...ended, header(9, { ids: ['a'] })), 'local', except()))).toBe(9);
  });

  it('R17 many subjects hold back everything until they are known, and then no more than they are', async () => {
    const headers = await all(header(1, { ids: many }), header(2, { ids: ['m999'] }), header(3, { ids: ['other'] }));
    const [first] = headers;
    if (first === undefined) throw new Error('unreachable');
    const order = new Order();
    order.follow(headers);
    expect(order.choose('local', except(1))).toEqual({ next: undefined, unknown: [first] });
    await learnFrom(order, first, many);
    expect(nth(order.choose('local', except(1)).next)).toBe(3);
    const others = await all(header(1, { ids: many, target: 'server' }), header(2));
    expect(nth(pick(others, 'local', except(1)))).toBe(2);
  });

  it('R17 many subjects are asked for only where they decide, the oldest first', async () => {
    const waiting = await all(header(1, { ids: ['a'] }), header(2, { ids: many }), header(3, { ids: many }), header(4));
    const order = new Order();
    order.follow(waiting);
    expect(order.choose('local', except()).unknown).toEqual([]);
    expect(order.choose('local', except(1)).unknown).toEqual(waiting.slice(1, 3));
    const alone = new Order();
    alone.follow(waiting.slice(1, 2));
    expect(alone.choose('local', except(2))).toEqual({ next: undefined, unknown: [] });
    const lane = new Order();
    lane.follow(await all(header(1, { ids: ['a'], lane: 'x' }), header(2, { ids: many, lane: 'x' })));
    expect(lane.choose('local', except(1)).unknown).toEqual([]);
  });

  it('R17 what was learned goes when the bulk operation is at its end', async () => {
    const [first, second] = await all(header(1, { ids: many }), header(2, { ids: ['m5'] }));
    if (first === undefined || second === undefined) throw new Error('unreachable');
    const order = new Order();
    order.follow([first, second]);
    await learnFrom(order, first, many);
    expect(order.learned).toBe(1000);
    expect(order.choose('local', except(1)).next).toBeUndefined();
    order.follow([{ ...first, state: 'done' }, second]);
    order.work(Infinity);
    expect(order.learned).toBe(0);
    expect(nth(order.choose('local', except(1)).next)).toBe(2);
  });

  it('R17 while many subjects come or go, too much is held back, never too little', async () => {
    const [first, second] = await all(
      header(1, { ids: many }),
      header(2, { ids: ['m999'] }),
      header(3, { ids: ['x'] }),
    );
    const third = await header(3, { ids: ['x'] });
    if (first === undefined || second === undefined) throw new Error('unreachable');
    const next = (): number | undefined => nth(order.choose('local', except(1)).next);
    const order = new Order();
    order.follow([first, second, third]);
    order.learn(first, Uint32Array.from((await hashed(many)) ?? []));
    order.work(999);
    // Learned again meanwhile: it is the same.
    order.learn(first, Uint32Array.from((await hashed(many)) ?? []));
    expect([next(), order.hasWork]).toEqual([undefined, true]);
    order.work(1);
    expect([next(), order.hasWork]).toEqual([3, false]);
    order.follow([{ ...first, state: 'done' }, second]);
    order.work(999);
    expect(next()).toBeUndefined();
    order.work(1);
    expect(next()).toBe(2);
    expect(order.learned).toBe(0);
  });

  it('R17 one that is at its end before all its subjects were taken in leaves nothing behind', async () => {
    const [first, second] = await all(header(1, { ids: many }), header(2, { ids: ['m1'] }));
    if (first === undefined || second === undefined) throw new Error('unreachable');
    const order = new Order();
    order.follow([first, second]);
    order.learn(first, Uint32Array.from((await hashed(many)) ?? []));
    order.work(500);
    order.follow([{ ...first, state: 'cancelled' }, second]);
    expect(order.learned).toBe(500);
    order.work(500);
    expect([order.learned, order.hasWork]).toEqual([0, false]);
    expect(nth(order.choose('local', except()).next)).toBe(2);
  });

  it('R17 one that holds everything of its target comes after all earlier and before all later ones', async () => {
    const headers = await all(header(1), header(2, { subjects: null }), header(3));
    expect(pick(headers, 'local', except(1))).toBeUndefined();
    expect(nth(pick(headers.slice(1), 'local', except()))).toBe(2);
    expect(pick(headers.slice(1), 'local', except(2))).toBeUndefined();
  });

  it('R17 two ids with one hash are taken for one document', async () => {
    // A known pair of FNV-1a.
    expect(await hashed(['costarring'])).toEqual(await hashed(['liquid']));
    const headers = await all(header(1, { ids: ['costarring'] }), header(2, { ids: ['liquid'] }));
    expect(pick(headers, 'local', except(1))).toBeUndefined();
  });

  it('R17 the same document in the other target is another subject', async () => {
    const headers = await all(header(1, { ids: ['a'], target: 'server' }), header(2, { ids: ['a'] }));
    expect(nth(pick(headers, 'local', except(1)))).toBe(2);
  });

  it('R17 whatever happens in whatever order, it runs what an exact look at all pairs allows, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyChange, { maxLength: 60 }), async (changes) => {
        const world = new World();
        for (const change of changes) {
          await world.apply(change);
          world.checkUnderWay(change.steps);
          world.check();
        }
      }),
      { numRuns: 300 },
    );
  });

  it('R17 the subjects of one that waits are looked at once, however often it is asked', async () => {
    let looks = 0;
    const waiting = await Promise.all(
      Array.from({ length: 1000 }, async (_, at) => {
        const one = await header(at + 1, {
          ids: Array.from({ length: 10 }, (__, id) => `${String(at)}-${String(id)}`),
        });
        const subjects = one.subjects as number[];
        const values = subjects.values.bind(subjects);
        subjects[Symbol.iterator] = () => {
          looks++;
          return values();
        };
        return one;
      }),
    );
    const order = new Order();
    let headers = waiting;
    let asked = 0;
    for (let round = 0; round < 100; round++) {
      headers = headers.map((one, at) => (at === round ? { ...one, attempt: round } : one));
      order.follow(headers);
      order.choose('local', () => {
        asked++;
        return false;
      });
    }
    expect(looks).toBe(1000);
    expect(asked).toBe(100 * 1000);
  });
});

interface Change {
  readonly kind: 'queue' | 'state' | 'learn' | 'reread';
  readonly which: number;
  readonly ids: readonly number[];
  readonly lane: 'x' | 'y' | null;
  readonly target: Target;
  readonly size: 'small' | 'many' | 'everything';
  readonly state: BulkOperationState;
  /** Whether a number before it was left out, to be taken by another tab that is heard of later. */
  readonly leavesGap: boolean;
  /** How far the order comes with its work before it is asked. */
  readonly steps: number;
}
const anyChange: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('queue', 'queue', 'state', 'learn', 'reread'),
  which: fc.nat(50),
  ids: fc.array(fc.nat(12), { maxLength: 3 }),
  lane: fc.constantFrom(null, null, null, 'x', 'y'),
  target: fc.constantFrom('local', 'server'),
  size: fc.constantFrom('small', 'small', 'small', 'many', 'everything'),
  state: fc.constantFrom('queued', 'running', 'waiting-retry', 'waiting-auth', 'paused', 'done', 'failed', 'cancelled'),
  leavesGap: fc.boolean(),
  steps: fc.nat(3),
});

/** All headers with the ids that they stand for, and a plain model of R17. */
class World {
  readonly #order = new Order();
  readonly #all = new Map<number, { header: Header; ids: readonly string[] | null; isKnown: boolean }>();
  readonly #gaps: number[] = [];
  #last = 0;

  async apply(change: Change): Promise<void> {
    if (change.kind === 'queue') await this.#queue(change);
    else await this.#change(change);
    this.#order.follow(this.#headers());
  }

  /** Work that is not done yet never lets one pass that an exact look would hold back. */
  checkUnderWay(steps: number): void {
    this.#order.work(steps);
    for (const target of ['local', 'server'] as const) {
      this.#order.choose(target, (one) => {
        expect(this.#mayRun(one, target, false)).toBe(true);
        return false;
      });
    }
  }

  check(): void {
    this.#order.work(Infinity);
    for (const target of ['local', 'server'] as const) {
      const allowed = this.#headers().filter((one) => this.#mayRun(one, target, true));
      const [exact] = this.#headers().filter((one) => this.#mayRun(one, target, false));
      const { next, unknown } = this.#order.choose(target, () => true);
      expect(next?._id).toBe(allowed[0]?._id);
      // Nothing is held back for ever: what an exact look allows runs, or is asked for.
      if (exact !== undefined && next === undefined) expect(unknown.length).toBeGreaterThan(0);
      const every: string[] = [];
      this.#order.choose(target, (one) => {
        every.push(one._id);
        return false;
      });
      expect(every).toEqual(allowed.map(({ _id }) => _id));
    }
  }

  async #queue({ ids, lane, target, size, leavesGap }: Change): Promise<void> {
    const names = [...new Set(ids)].map((id) => `d${String(id)}`);
    const sequence = leavesGap ? this.#last + 2 : (this.#gaps.pop() ?? this.#last + 1);
    if (leavesGap) this.#gaps.push(this.#last + 1);
    this.#last = Math.max(this.#last, sequence);
    const made = await header(sequence, {
      ids: names,
      lane,
      target,
      ...(size === 'everything' ? { subjects: null } : {}),
      ...(size === 'many' ? { subjects: { digest: `d:${String(sequence)}:`, count: names.length } } : {}),
    });
    this.#all.set(sequence, { header: made, ids: size === 'everything' ? null : names, isKnown: size !== 'many' });
  }

  async #change({ kind, which, state }: Change): Promise<void> {
    const all = [...this.#all.values()];
    const one = all[which % Math.max(all.length, 1)];
    if (one === undefined) return;
    if (kind === 'learn') {
      if (one.isKnown || endStates.has(one.header.state)) return;
      this.#order.learn(one.header, Uint32Array.from((await hashed(one.ids ?? [])) ?? []));
      one.isKnown = true;
    } else if (kind === 'state') {
      one.header = { ...one.header, state };
      if (endStates.has(state) && isApart(one.header)) one.isKnown = false;
    } else {
      one.header = JSON.parse(JSON.stringify(one.header)) as Header;
    }
  }

  #headers(): Header[] {
    return [...this.#all.values()].map(({ header: one }) => one).sort((a, b) => sequenceOf(a._id) - sequenceOf(b._id));
  }

  /** `asKnown`: what is not known yet counts as everything. */
  #mayRun(one: Header, target: Target, asKnown: boolean): boolean {
    if (one.target !== target || endStates.has(one.state)) return false;
    const subjects = (of: Header): readonly string[] | null => {
      const known = this.#all.get(sequenceOf(of._id));
      return known === undefined || (asKnown && !known.isKnown) ? null : known.ids;
    };
    const mine = subjects(one);
    return this.#headers().every((earlier) => {
      if (sequenceOf(earlier._id) >= sequenceOf(one._id) || endStates.has(earlier.state)) return true;
      if (earlier.lane !== null && earlier.lane === one.lane) return false;
      if (earlier.target !== target) return true;
      const theirs = subjects(earlier);
      return mine !== null && theirs !== null && !mine.some((id) => theirs.includes(id));
    });
  }
}

const isApart = ({ subjects }: Header): boolean => subjects !== null && !Array.isArray(subjects);
