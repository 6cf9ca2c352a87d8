import { z } from 'zod/mini';
import type { PouchLike } from '../model/pouch.js';

const nothingNew = z.looseObject({ results: z.tuple([]), last_seq: z.union([z.string(), z.number()]) });
const changesAsked = z.object({ since: z.union([z.string(), z.number()]) });

/**
 * What a pull remembers from round to round: the name that its server gives itself, of which PouchDB makes the checkpoint's
 * id. A server in its place that is another one is found by the checkpoint itself, which it does not have. Undefined after a
 * failure: PouchDB takes another name where it gets no answer.
 */
export interface PullMemory {
  serverId: string | undefined;
}

/**
 * Saves the replicator requests that bring nothing, in one round. It reads the server's checkpoint at its start, and once more
 * before it writes it; and it writes one whenever the server names the present in other words, as a cluster does with each
 * answer though nothing has changed.
 */
export class PullRound {
  readonly #remote: Partial<Pick<PouchLike, 'id' | 'get' | 'put' | 'changes'>>;
  readonly #memory: PullMemory;
  readonly #askId: () => Promise<string>;
  #serverId: string | undefined;
  /** The checkpoint as it was read, as JSON; undefined: not read, or written since. */
  #checkpoint: { readonly id: string; readonly text: string } | undefined;
  #since: string | number = 0;

  /** `remote`: a stand-in for PouchDB may have no more than its replication needs. */
  constructor(remote: Partial<Pick<PouchLike, 'id' | 'get' | 'put' | 'changes'>>, memory: PullMemory) {
    this.#remote = remote;
    this.#memory = memory;
    // Bound before this round's own calls take their places.
    this.#askId = remote.id?.bind(remote) ?? (() => Promise.resolve(''));
  }

  /** Keeps no promise: a database that is not ready yet answers through this very call again. */
  async serverId(): Promise<string> {
    const id = this.#memory.serverId ?? this.#serverId ?? (await this.#askId());
    this.#serverId = id;
    return id;
  }

  /** The round is over: what it has learned holds, unless it failed. */
  ended(hasFailed: boolean): void {
    this.#memory.serverId = hasFailed ? undefined : this.#serverId;
  }

  /** What the replicator calls instead of the database's own. */
  calls(): object {
    const { get, put, changes } = this.#remote;
    if (get === undefined || put === undefined || changes === undefined) return {};
    const own = { get: get.bind(this.#remote), put: put.bind(this.#remote), changes: changes.bind(this.#remote) };
    return {
      get: async (id: string, options: object = {}): Promise<object> => {
        if (this.#checkpoint?.id === id) return JSON.parse(this.#checkpoint.text) as object;
        const found = await own.get(id, options);
        if (id.startsWith('_local/')) this.#checkpoint = { id, text: JSON.stringify(found) };
        return found;
      },
      // Also after a 409: then the replicator reads what is there now.
      put: (doc: object): Promise<unknown> => {
        this.#checkpoint = undefined;
        return own.put(doc);
      },
      changes: (options: object) => {
        const asked = changesAsked.safeParse(options);
        this.#since = asked.success ? asked.data.since : 0;
        return own.changes(options);
      },
    };
  }

  /**
   * An answer of the changes feed as the replicator may see it: where nothing came after the place that was asked from, that
   * place still holds, and need not be written anew. Not for a filtered feed: it has come further, past what it left out.
   */
  async steady(url: string, answer: Response): Promise<Response> {
    if (this.#since === 0 || !new URL(url).pathname.endsWith('/_changes')) return answer;
    const text = await answer.text();
    const { status, headers } = answer;
    const parsed = nothingNew.safeParse(JSON.parse(text));
    const told = parsed.success ? JSON.stringify({ ...parsed.data, last_seq: this.#since }) : text;
    return new Response(told, { status, headers });
  }
}
