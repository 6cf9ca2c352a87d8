import {
  deleteAction,
  updateAction,
  type ActionPart,
  type AnyPlan,
  type Doc,
  type DocRow,
  type DocumentAction,
  type IndexKey,
  type PlanContext,
} from '@afield/client';
import { contactsIndex, setContact, setParent } from '@afield/contacts';

const actions = new Map<string, DocumentAction>(
  [setParent, setContact, updateAction, deleteAction].map((action) => [action.name, action as DocumentAction]),
);

/** What became of an operation. */
export interface Outcome {
  readonly action: string;
  readonly id: string;
  /** `applied`, `already-applied`, or the code of the failure. */
  readonly is: string;
}

/** Documents without a store: plans are run on them, and their operations applied as the actions say. */
export class Documents {
  readonly #docs = new Map<string, Doc>();
  readonly #deleted = new Set<string>();
  /** Questions that plans have asked: reads, and queries of the index. */
  calls = 0;
  /** The most ids or keys that one of them had. */
  most = 0;

  constructor(docs: Iterable<Doc>) {
    for (const doc of docs) this.put(doc);
  }

  get live(): readonly Doc[] {
    return [...this.#docs.values()];
  }

  get(id: string): Doc | undefined {
    return this.#docs.get(id);
  }

  put(doc: Doc): void {
    this.#docs.set(doc._id, doc);
  }

  remove(id: string): void {
    this.#docs.delete(id);
    this.#deleted.add(id);
  }

  copy(): Documents {
    const copy = new Documents(this.live);
    for (const id of this.#deleted) copy.#deleted.add(id);
    return copy;
  }

  /** The operations of a plan; in the order in which they would run. */
  async plan(plan: AnyPlan, request: unknown): Promise<readonly ActionPart[]> {
    const validated = await plan.request['~standard'].validate(request);
    if (validated.issues !== undefined) throw new Error(validated.issues[0]?.message);
    return plan.plan(validated.value, this.#context());
  }

  /** Plans, and applies all. */
  async run(plan: AnyPlan, request: unknown): Promise<readonly Outcome[]> {
    return this.apply(await this.plan(plan, request));
  }

  /** Applies operations as a runner does. What works at the server (`delete-user`) is passed over. */
  apply(parts: readonly ActionPart[], isTaken: (place: number) => boolean = () => true): readonly Outcome[] {
    let place = -1;
    return parts.flatMap(({ action, operations }) =>
      operations.flatMap(({ id, ...content }) => {
        place += 1;
        const known = actions.get(action);
        if (known === undefined || !isTaken(place) || typeof id !== 'string') return [];
        return [{ action, id, is: this.#applyOne(known, id, content) }];
      }),
    );
  }

  #applyOne(action: DocumentAction, id: string, given: object): string {
    const validated = action.operation['~standard'].validate(given);
    if (validated instanceof Promise || validated.issues !== undefined) throw new Error(`${action.name} is refused`);
    const content = validated.value;
    const doc = this.#docs.get(id);
    if (doc === undefined) return action.missing === 'applied' ? 'already-applied' : 'missing';
    if (action.isApplied(doc, content)) return 'already-applied';
    const failure = action.guard?.(doc, content);
    if (failure !== undefined) return failure.code;
    const next = action.apply(doc, content);
    if (next._deleted === true) this.remove(id);
    else this.put(next);
    return 'applied';
  }

  #context(): PlanContext {
    const index = this.#index();
    return {
      db: {
        read: (ids) => {
          this.#count(ids);
          return Promise.resolve(ids.map((id) => this.#row(id)));
        },
        range: () => Promise.reject(new Error('reads all documents')),
      },
      index: (name) => {
        if (name !== contactsIndex.name) throw new TypeError(`another index: ${name}`);
        return {
          query: (query) => {
            const { keys } = query as { keys: readonly IndexKey[] };
            this.#count(keys);
            const rows = keys.flatMap((key) => (index.get(JSON.stringify(key)) ?? []).map((id) => ({ id, key })));
            return Promise.resolve({ rows, behind: false });
          },
        };
      },
      fetch: () => Promise.reject(new Error('no network')),
      signal: new AbortController().signal,
      attempt: 1,
      now: 0,
    };
  }

  #index(): ReadonlyMap<string, readonly string[]> {
    const index = new Map<string, string[]>();
    for (const doc of this.#docs.values()) {
      for (const key of (contactsIndex.keys(doc) ?? []) as readonly IndexKey[]) {
        const name = JSON.stringify(key);
        const ids = index.get(name);
        if (ids === undefined) index.set(name, [doc._id]);
        else ids.push(doc._id);
      }
    }
    return index;
  }

  #row(id: string): DocRow {
    const doc = this.#docs.get(id);
    const deleted = doc === undefined && this.#deleted.has(id);
    return { id, rev: doc === undefined && !deleted ? undefined : '1-a', deleted, doc };
  }

  #count(list: readonly unknown[]): void {
    this.calls += 1;
    this.most = Math.max(this.most, list.length);
  }
}

/** Operations of all parts. */
export function total(parts: readonly ActionPart[]): number {
  return parts.reduce((sum, { operations }) => sum + operations.length, 0);
}
