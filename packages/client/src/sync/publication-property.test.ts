import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RetryableError } from '../model/errors.js';
import type { DocumentEvent, PublishAnswer } from '../model/event.js';
import { endStates, type Target } from '../model/states.js';
import { OutboxBed, TestPlace, type Tab } from '../outbox/outbox-bed.fixture.js';
import { hasEvent, isOutcome, sequenceOf, type Header, type RowState } from '../queue/stored.js';
import { publicationOf, published } from './publication-bed.fixture.js';
import type { Publication } from './publication.js';

const documents = ['a', 'b', 'c', 'd'];
const documentIds = fc.uniqueArray(fc.constantFrom(...documents), { minLength: 1 });
const which = fc.nat(1);
const outcome = fc.constantFrom('applied', 'already-applied', 'failed', 'open', 'intent');
const mode = fc.constantFrom('takes', 'down', 'answer lost', 'half') as fc.Arbitrary<Mode>;
type Mode = 'takes' | 'down' | 'answer lost' | 'half';

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('enqueue' as const),
      ids: documentIds,
      target: fc.constantFrom<Target>('local', 'server'),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('run' as const),
      which,
      size: fc.integer({ min: 1, max: 3 }),
      rows: fc.array(outcome, { minLength: 3, maxLength: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('publish' as const), minutes: fc.nat(2), together: fc.boolean() }),
  },
  fc.record({
    do: fc.constant('stop' as const),
    which,
    state: fc.constantFrom('cancelled' as const, 'failed' as const),
  }),
  fc.record({ do: fc.constant('confirm' as const), ids: documentIds }),
  fc.record({ do: fc.constant('refuse' as const), place: fc.nat(1), ids: fc.subarray(documents) }),
  fc.record({ do: fc.constant('place' as const), place: fc.nat(1), mode }),
  fc.record({ do: fc.constant('lose a write' as const), after: fc.nat(3), isDone: fc.boolean() }),
  fc.record({ do: fc.constant('restart' as const) }),
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

/** A place that stores events once, and checks each that comes. */
class CheckingPlace extends TestPlace {
  readonly stored = new Map<string, DocumentEvent>();
  readonly #last = new Map<string, DocumentEvent>();
  mode: Mode = 'takes';
  refused: readonly string[] = [];

  override answer = (events: readonly DocumentEvent[]): PublishAnswer => {
    const names = events.map(({ target, documentId }) => `${target} ${documentId}`);
    if (new Set(names).size < names.length) throw new Error(`two of one document: ${names.join()}`);
    if (this.mode === 'down') throw new RetryableError('down', { class: 'network', code: 'x' });
    const taken = events.filter(
      (event, at) => !this.refused.includes(event.documentId) && (this.mode !== 'half' || at % 2 === 0),
    );
    for (const event of taken) this.#store(event, `${event.target} ${event.documentId}`);
    if (this.mode === 'answer lost') throw new RetryableError('lost', { class: 'network', code: 'x' });
    return { accepted: taken.map(({ id }) => id) };
  };

  readonly wrong: string[] = [];

  #store(event: DocumentEvent, name: string): void {
    const known = this.stored.get(event.id);
    if (known !== undefined) {
      if (JSON.stringify(known) !== JSON.stringify(event)) this.wrong.push(`other content: ${event.id}`);
      return;
    }
    const last = this.#last.get(name);
    const isLater =
      last === undefined ||
      event.sequence > last.sequence ||
      (event.sequence === last.sequence && event.index > last.index);
    if (!isLater) this.wrong.push(`out of order: ${event.id}`);
    this.#last.set(name, event);
    this.stored.set(event.id, event);
  }
}

/** One device: a runner's writes, two places, one or two tabs that publish. */
class Device {
  readonly bed = new OutboxBed();
  readonly places = [new CheckingPlace('one'), new CheckingPlace('two')] as const;
  readonly #confirmed = new Set<string>();
  /** The rows of the batch that is under way, by sequence. */
  readonly #partial = new Map<number, RowState[]>();
  readonly #revisions = new Map<string, string[]>();
  #revision = 0;
  #isConfirmedAll = false;
  #tabs: { tab: Tab; publications: Publication[] }[] = [];

  async begin(): Promise<void> {
    this.#tabs = [];
    for (let number = 0; number < 2; number++) {
      const tab = this.bed.open();
      await tab.queue.open('s', 0);
      const parts = {
        missing: (asked: ReadonlyMap<string, readonly string[]>) =>
          Promise.resolve(
            new Map([...asked].filter(([, [rev = '']]) => !this.#isConfirmedAll && !this.#confirmed.has(rev))),
          ),
        refresh: async () => {
          await tab.queue.headers.loadNew();
          await tab.queue.headers.refreshOpen();
        },
      };
      this.#tabs.push({ tab, publications: this.places.map((place) => publicationOf(tab, place, parts)) });
    }
  }

  async do(step: Step): Promise<void> {
    const { tab } = this.bed;
    switch (step.do) {
      case 'enqueue':
        await tab.append(step.ids, step.target);
        return;
      case 'run': {
        const header = this.#runnable()[step.which];
        if (header !== undefined) await this.#run(header, step.size, step.rows);
        return;
      }
      case 'stop': {
        const header = this.#runnable()[step.which];
        if (header !== undefined) await this.#stop(header, step.state);
        return;
      }
      case 'confirm':
        for (const id of step.ids) for (const rev of this.#revisions.get(id) ?? []) this.#confirmed.add(rev);
        for (const { publications } of this.#tabs) for (const publication of publications) publication.pushed();
        return;
      case 'refuse':
        this.#place(step.place).refused = step.ids;
        return;
      case 'place':
        this.#place(step.place).mode = step.mode;
        return;
      case 'publish':
        for (let minute = 0; minute <= step.minutes; minute++) await this.#publish(step.together);
        return;
      case 'lose a write':
        this.#loseWrite(step.after, step.isDone);
        return;
      case 'restart':
        for (const { publications } of this.#tabs) for (const one of publications) await one.idle();
        await this.begin();
    }
  }

  /** Everything works again, and all that waits comes to its end. */
  async end(): Promise<void> {
    for (let header = this.#runnable()[0]; header !== undefined; header = this.#runnable()[0]) {
      await this.#run(header, 3, ['applied', 'applied', 'applied']);
    }
    this.#isConfirmedAll = true;
    for (const place of this.places) {
      place.mode = 'takes';
      place.refused = [];
    }
    // A tab that has not looked for long learns what the other has done when it writes.
    for (let minute = 0; minute < 20; minute++) await this.#publish(minute >= 10);
  }

  async check(): Promise<void> {
    const expected = new Set<string>();
    for (const header of this.bed.tab.queue.headers.all()) {
      for (const { record, rows } of await this.bed.tab.queue.records.of(sequenceOf(header._id))) {
        rows.forEach((row, at) => hasEvent(row) && expected.add(`s:b:${header.key}:${String(record.from + at)}`));
      }
    }
    for (const place of this.places) {
      expect(place.wrong).toEqual([]);
      expect(new Set(place.stored.keys())).toEqual(expected);
    }
    for (const { publications } of this.#tabs) {
      for (const publication of publications)
        expect(publication.status()).toMatchObject({ state: 'idle', unpublished: 0 });
    }
  }

  /** Never says that less is unpublished than what all can see of ended batches. Whoever leads knows all headers. */
  async #checkCounts(): Promise<void> {
    await this.#tabs[0]?.tab.queue.headers.loadNew();
    await this.#tabs[0]?.tab.queue.headers.refreshOpen();
    const counted = this.bed.tab.queue.headers.all().reduce((sum, { events = 0 }) => sum + events, 0);
    const [first] = this.#tabs;
    this.places.forEach((place, number) => {
      const shown = first?.publications[number]?.status().unpublished ?? 0;
      if (shown < counted - place.stored.size) place.wrong.push('too few are shown as unpublished');
    });
  }

  async #publish(together: boolean): Promise<void> {
    this.bed.clock.advance(60_000);
    const tabs = together ? this.#tabs : this.#tabs.slice(0, 1);
    await Promise.all(tabs.flatMap(({ publications }) => publications.map((one) => published(one))));
    await this.#checkCounts();
  }

  /** The oldest of those that share a document, as the queue would choose (R17). */
  #runnable(): Header[] {
    const held = new Set<string>();
    return this.bed.tab.queue.headers.all().filter((header) => {
      if (endStates.has(header.state)) return false;
      const subjects = (header.subjects as readonly number[]).map((hash) => `${header.target} ${String(hash)}`);
      const isFree = !subjects.some((subject) => held.has(subject));
      for (const subject of subjects) held.add(subject);
      return isFree;
    });
  }

  async #run(header: Header, size: number, outcomes: readonly string[]): Promise<void> {
    const sequence = sequenceOf(header._id);
    const before =
      this.#partial.get(sequence) ?? Array<RowState>(Math.min(size, header.total - header.cursor)).fill({ s: 'open' });
    const operations = await this.bed.tab.queue.contents.operations(header, header.cursor, before.length);
    const rows = before.map((row, at): RowState =>
      isOutcome(row) ? row : this.#row(String(operations[at]?.i), outcomes[at] ?? 'applied'),
    );
    if (rows.every(isOutcome)) this.#partial.delete(sequence);
    else this.#partial.set(sequence, rows);
    await this.bed.tab.outcome(header, rows);
  }

  #row(id: string, s: string): RowState {
    if (s === 'open' || s === 'failed') return { s };
    const rev = `${String(++this.#revision)}-x`;
    this.#revisions.set(id, [...(this.#revisions.get(id) ?? []), rev]);
    if (s === 'intent') return { s, a: this.#revision };
    return { s: s === 'applied' ? 'applied' : 'already-applied', r: rev, a: this.#revision };
  }

  async #stop(header: Header, state: 'cancelled' | 'failed'): Promise<void> {
    const rows = this.#partial.get(sequenceOf(header._id)) ?? [];
    const events = (header.events ?? 0) + rows.filter(hasEvent).length;
    await this.bed.tab.store({ ...header, state, events });
  }

  #place(number: number): CheckingPlace {
    return number === 0 ? this.places[0] : this.places[1];
  }

  /** The next write but so many of the first tab fails, before or after it was done. */
  #loseWrite(after: number, isDone: boolean): void {
    const queue = this.#tabs[0]?.tab.queue;
    if (queue === undefined) return;
    const write = queue.docs.write.bind(queue.docs);
    let left = after;
    queue.docs.write = async (docs) => {
      if (left-- > 0) return write(docs);
      queue.docs.write = write;
      if (isDone) await write(docs);
      throw new RetryableError('gone', { class: 'storage', code: 'AbortError' });
    };
  }
}

async function holds(steps: readonly Step[]): Promise<void> {
  const device = new Device();
  await device.begin();
  for (const step of steps) await device.do(step);
  await device.end();
  await device.check();
}

describe('events of random histories', () => {
  it('O3 O6 O7 O8 V1 are published once, in the order of their documents, by whatever tab, through any failure', async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 30 }), holds), { numRuns: 60 });
  }, 120_000);
});
