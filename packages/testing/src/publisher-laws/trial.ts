import {
  AfieldError,
  sameJson,
  standalonePublishContext,
  type DocumentEvent,
  type PublishAnswer,
  type PublishContext,
} from '@afield/client';
import { FakeClock } from '../fake-clock.js';
import { faultyFetch, type FaultyFetch } from '../faulty-fetch.js';
import { wrongOption } from '../laws/asked-laws.js';
import { wrongInAnswer } from './answer-shape.js';
import { BrokenPublisherLawError, type PublisherLaw } from './laws.js';
import type { PublisherWorld } from './world.js';

const writes = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** What a call brought: an answer, or what it threw. */
export type Outcome = { readonly answer: PublishAnswer } | { readonly error: unknown };

/** One publisher in a world of its own, with a network that can be made to fail. */
export class PublisherTrial {
  readonly #network: FaultyFetch;
  readonly #context: PublishContext;
  #attempt = 0;
  #isNetworkFaulty = false;

  constructor(
    readonly world: PublisherWorld,
    readonly law: PublisherLaw,
  ) {
    this.#network = faultyFetch(world.fetch ?? ((input, init) => globalThis.fetch(input, init)));
    this.#context = standalonePublishContext({
      fetch: this.#network.fetch,
      clock: new FakeClock(() => Promise.resolve()),
      ...(world.server === undefined ? {} : { server: world.server }),
      ...(world.auth === undefined ? {} : { auth: world.auth }),
    });
  }

  /** Whether the faults of the suite reach this publisher. */
  get usesOurNetwork(): boolean {
    return this.world.failNext === undefined;
  }

  /** The next write gets no answer: `before` the place has it, or `after` the work was done there. */
  failNext(when: 'before' | 'after'): void {
    if (this.world.failNext !== undefined) this.world.failNext(when);
    else this.#failWrite(1, when === 'after');
  }

  /** The second write of the next call gets no answer. */
  failSecond(commit: boolean): void {
    this.#failWrite(2, commit);
  }

  /** Every request is answered so, until `heal`. */
  answerAll(fault: { readonly status: number; readonly text?: string } | 'captive-portal'): void {
    this.#isNetworkFaulty = true;
    this.#network.add({ do: fault === 'captive-portal' ? { type: fault } : { type: 'answer', ...fault } });
  }

  heal(): void {
    this.#network.clear();
  }

  /** Publishes, and checks what holds for every call: see `no-false-success`. */
  async publish(events: readonly DocumentEvent[]): Promise<Outcome> {
    this.#attempt += 1;
    const context = { ...this.#context, attempt: this.#attempt };
    let given: unknown;
    try {
      given = await this.world.publisher.publish(events, context);
    } catch (error) {
      if (error instanceof AfieldError) return { error };
      throw this.broken(
        `it throws an error that is none of Afield's, which is taken for a bug: ${nameOf(error)} (throw RetryableError for what may pass)`,
      );
    }
    const problem = wrongInAnswer(given);
    if (problem !== undefined) throw this.broken(problem);
    const answer = given as PublishAnswer;
    await this.#checkAnswer(events, answer);
    this.#checkReached(answer);
    return { answer };
  }

  /** Publishes where nothing is wrong: an answer is due, and all of it must be accepted. */
  async publishAll(events: readonly DocumentEvent[], when: string): Promise<void> {
    const outcome = await this.publish(events);
    if ('error' in outcome) throw this.broken(`${when} it throws ${nameOf(outcome.error)}`);
    const missing = events.filter(({ id }) => !outcome.answer.accepted.includes(id));
    if (missing[0] === undefined) return;
    const code = outcome.answer.error?.code ?? 'none';
    throw this.broken(`${when} ${quoted(missing[0].id)} is not accepted (error: ${code})`);
  }

  /** Exactly these events are there, each once and whole. */
  async mustHold(events: readonly DocumentEvent[], when: string): Promise<void> {
    const stored = await this.stored();
    for (const event of events) {
      const found = stored.filter(({ id }) => id === event.id);
      if (found.length !== 1) throw this.broken(`${when} ${quoted(event.id)} is there ${String(found.length)} times`);
      if (!sameJson(found[0], event)) throw this.broken(`${when} ${quoted(event.id)} is there as ${shown(found[0])}`);
    }
    if (stored.length !== events.length) {
      throw this.broken(`${when} ${String(stored.length)} events are there, not ${String(events.length)}`);
    }
  }

  /** What is there now. */
  async stored(): Promise<readonly DocumentEvent[]> {
    const stored: unknown = await this.world.stored();
    if (Array.isArray(stored)) return stored as readonly DocumentEvent[];
    throw wrongOption('publisherLaws', '`stored` of the world must give a list of events');
  }

  broken(what: string): BrokenPublisherLawError {
    return new BrokenPublisherLawError(this.world.publisher.name, this.law, what);
  }

  async #checkAnswer(events: readonly DocumentEvent[], { accepted, conflicts = [] }: PublishAnswer): Promise<void> {
    const stored = await this.stored();
    const given = new Map(events.map((event) => [event.id, event]));
    for (const id of [...accepted, ...conflicts.map((conflict) => conflict.id)]) {
      if (!given.has(id)) throw this.broken(`the answer names ${quoted(id)}, which was not in the call`);
    }
    for (const id of accepted) {
      const there = stored.filter((event) => event.id === id);
      if (!there.some((event) => sameJson(event, given.get(id)))) {
        const how = there.length === 0 ? 'is not there' : 'is there with other content';
        throw this.broken(`it accepts ${quoted(id)}, which ${how}`);
      }
    }
    const both = conflicts.find(({ id }) => accepted.includes(id));
    if (both !== undefined) throw this.broken(`${quoted(both.id)} is accepted and in conflict`);
  }

  /** Where no request of the publisher comes by, the faults of the suite do not reach it, and what it says is no wonder. */
  #checkReached({ accepted, conflicts = [] }: PublishAnswer): void {
    if (!this.#isNetworkFaulty || this.#network.requests.length > 0 || accepted.length + conflicts.length === 0) return;
    throw this.broken(
      'it works without `context.fetch` and `context.database`, where the suite puts its faults: give `failNext` in the world',
    );
  }

  #failWrite(nth: number, commit: boolean): void {
    this.#isNetworkFaulty = true;
    this.#network.add({ when: { method: writes, nth }, do: { type: 'network-error', commit } });
  }
}

function quoted(id: string): string {
  return `the event ${JSON.stringify(id)}`;
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing';
}

export function nameOf(error: unknown): string {
  if (error instanceof AfieldError) return `${error.name} (${error.code})`;
  return error instanceof Error ? error.name : typeof error;
}
