import { z } from 'zod/mini';
import { kindOf, kinds, written, writtenOf, type Kind, type Written } from './day-kinds.js';

/** What the server saw of one device. */
export interface DayCount {
  /** Requests by kind, answered or not. */
  readonly requests: Readonly<Record<Kind, number>>;
  readonly total: number;
  /** Of these: came to the address while the server was away. */
  readonly unanswered: number;
  /** Writes of documents, also of one that was there before. */
  readonly writes: Readonly<Record<Written, number>>;
  /** Documents that these were, each counted once, and their bytes as JSON at the end. */
  readonly documents: Readonly<Record<Written, { readonly count: number; readonly bytes: number }>>;
  /** Bodies of requests and of answers, without headers. */
  readonly bytes: { readonly up: number; readonly down: number };
  /** Requests in the busiest minute. */
  readonly busiestMinute: number;
}

const bulk = z.object({ docs: z.array(z.looseObject({ _id: z.string() })) });

/** Counts what passes. */
export class DayCounter {
  readonly #requests = zeroes(kinds);
  readonly #writes = zeroes(written);
  readonly #documents = new Map<string, { kind: Written; bytes: number }>();
  readonly #perMinute = new Map<number, number>();
  #unanswered = 0;
  #up = 0;
  #down = 0;

  /** A request is sent; `minute` is the time. */
  request(method: string, url: string, body: string, minute: number): void {
    this.#requests[kindOf(method, url)] += 1;
    this.#perMinute.set(minute, (this.#perMinute.get(minute) ?? 0) + 1);
    this.#up += Buffer.byteLength(body);
  }

  /** It was not answered. */
  failed(): void {
    this.#unanswered += 1;
  }

  /** It was answered: what it wrote is there. */
  answered(method: string, url: string, body: string, answer: string): void {
    this.#down += Buffer.byteLength(answer);
    const path = decodeURIComponent(new URL(url).pathname).slice(1);
    const [database = '', resource = ''] = path.split('/');
    if (method === 'PUT' && resource === '_local') this.#wrote('checkpoints', path, body);
    if (resource !== '_bulk_docs') return;
    for (const doc of bulk.parse(JSON.parse(body)).docs) {
      this.#wrote(writtenOf(database, doc._id), `${database}/${doc._id}`, JSON.stringify(doc));
    }
  }

  result(): DayCount {
    const documents = Object.fromEntries(
      written.map((kind) => {
        const of = [...this.#documents.values()].filter((one) => one.kind === kind);
        return [kind, { count: of.length, bytes: of.reduce((sum, { bytes }) => sum + bytes, 0) }];
      }),
    ) as DayCount['documents'];
    return {
      requests: { ...this.#requests },
      total: Object.values(this.#requests).reduce((sum, count) => sum + count, 0),
      unanswered: this.#unanswered,
      writes: { ...this.#writes },
      documents,
      bytes: { up: this.#up, down: this.#down },
      busiestMinute: Math.max(0, ...this.#perMinute.values()),
    };
  }

  #wrote(kind: Written, id: string, json: string): void {
    this.#writes[kind] += 1;
    this.#documents.set(id, { kind, bytes: Buffer.byteLength(json) });
  }
}

function zeroes<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
