import { endStates, type Target } from '../model/states.js';
import { sequenceOf, type Header } from '../queue/stored.js';
import type { Subjects } from '../queue/subjects.js';

/** A bulk operation that is not at its end. */
interface Entry {
  readonly sequence: number;
  /** Whose documents it changes; more than one when an action runs at the server whatever the target. */
  readonly places: readonly Target[];
  header: Header;
  /** `unknown`: they are in the store, not read yet, and count as everything. */
  subjects: Subjects | 'unknown';
  /** How many of its subjects, and its lane, have someone else before it. */
  heldBy: number;
}

/** Many subjects that come or go, step by step: until it is done they count as everything, or as if they were there. */
interface Chore {
  readonly entry: Entry;
  subjects: Uint32Array;
  /** How many are done. */
  at: number;
  isLeaving: boolean;
}

/** Those that share one subject or one lane, in their order: the first of them holds back all others. */
type Chains<Key> = Map<Key, Entry | Entry[]>;

export interface Choice {
  readonly next: Header | undefined;
  /** Bulk operations whose subjects would have to be known to say whether more may run; oldest first. */
  readonly unknown: readonly Header[];
}

/**
 * Who waits for whom (R17): a bulk operation that is not at its end holds back later ones that share a subject of its
 * place, or its lane. It follows the headers as they change, so that a look at a thousand of them that wait costs no
 * more than the thousand. What it does not know, and what is on its way in or out, holds back too much, never too little.
 */
export class Order {
  readonly #entries = new Map<number, Entry>();
  readonly #live: Readonly<Record<Target, Entry[]>> = { local: [], server: [] };
  readonly #subjects: Readonly<Record<Target, Chains<number>>> = { local: new Map(), server: new Map() };
  readonly #lanes: Chains<string> = new Map();
  readonly #chores: Chore[] = [];
  readonly #placesOf: (header: Header) => readonly Target[];
  #learned = 0;

  constructor(placesOf = (header: Header): readonly Target[] => [header.target]) {
    this.#placesOf = placesOf;
  }

  /** How many subjects are kept that `learn` has brought. */
  get learned(): number {
    return this.#learned;
  }

  /** Whether `work` has something to do. */
  get hasWork(): boolean {
    return this.#chores.length > 0;
  }

  /** Takes over all headers as they are now. */
  follow(headers: readonly Header[]): void {
    let found = 0;
    for (const header of headers) {
      const entry = this.#entries.get(sequenceOf(header._id));
      if (endStates.has(header.state)) {
        if (entry !== undefined) this.#remove(entry);
        continue;
      }
      found++;
      if (entry === undefined) this.#add(header);
      else if (entry.header !== header) this.#renew(entry, header);
    }
    if (found === this.#entries.size) return;
    const present = new Set(headers);
    for (const entry of [...this.#entries.values()]) if (!present.has(entry.header)) this.#remove(entry);
  }

  /** The subjects that a header keeps beside itself: they are taken in by `work`. */
  learn(header: Header, subjects: Uint32Array): void {
    const entry = this.#entries.get(sequenceOf(header._id));
    if (entry?.subjects !== 'unknown' || !isSame(entry.header.subjects, header.subjects)) return;
    if (this.#chores.some((chore) => chore.entry === entry)) return;
    this.#learned += subjects.length;
    this.#chores.push({ entry, subjects, at: 0, isLeaving: false });
  }

  /** Takes so many subjects in or out. The page may have a turn before the next call. */
  work(most: number): void {
    for (let steps = most; steps > 0;) {
      const [chore] = this.#chores;
      if (chore === undefined) return;
      const { entry, subjects, at, isLeaving } = chore;
      const end = Math.min(at + steps, subjects.length);
      for (const place of entry.places) {
        const chains = this.#subjects[place];
        for (const subject of subjects.subarray(at, end)) (isLeaving ? leave : join)(chains, subject, entry);
      }
      steps -= end - at;
      chore.at = end;
      if (end < subjects.length) return;
      this.#chores.shift();
      if (isLeaving) this.#learned -= subjects.length;
      else entry.subjects = subjects;
    }
  }

  /** The first bulk operation with work at a place that may run there now. */
  choose(place: Target, mayRun: (header: Header, sequence: number) => boolean): Choice {
    const unknown: Header[] = [];
    const undecided: Header[] = [];
    let holdsAll = false;
    let isFirst = true;
    for (const entry of this.#live[place]) {
      const isHeld = entry.heldBy > 0 || holdsAll || (entry.subjects === null && !isFirst);
      const isUndecided = !isHeld && (undecided.length > 0 || (entry.subjects === 'unknown' && !isFirst));
      if (!isHeld && !isUndecided && mayRun(entry.header, entry.sequence)) return { next: entry.header, unknown };
      if (entry.subjects === 'unknown') undecided.push(entry.header);
      if (isUndecided) unknown.push(...undecided.slice(unknown.length));
      holdsAll ||= entry.subjects === null;
      isFirst = false;
    }
    return { next: undefined, unknown };
  }

  #add(header: Header): void {
    const { subjects, lane } = header;
    const known = subjects === null || Array.isArray(subjects);
    const entry: Entry = {
      sequence: sequenceOf(header._id),
      places: this.#placesOf(header),
      header,
      subjects: known ? subjects : 'unknown',
      heldBy: 0,
    };
    this.#entries.set(entry.sequence, entry);
    if (lane !== null) join(this.#lanes, lane, entry);
    for (const place of entry.places) {
      insert(this.#live[place], entry);
      if (Array.isArray(subjects)) for (const subject of subjects) join(this.#subjects[place], subject, entry);
    }
  }

  #remove(entry: Entry): void {
    const { subjects, places } = entry;
    const { lane } = entry.header;
    this.#entries.delete(entry.sequence);
    if (lane !== null) leave(this.#lanes, lane, entry);
    for (const place of places) {
      const live = this.#live[place];
      live.splice(live.indexOf(entry), 1);
      if (!Array.isArray(subjects)) continue;
      for (const subject of subjects as number[]) leave(this.#subjects[place], subject, entry);
    }
    if (subjects instanceof Uint32Array) this.#chores.push({ entry, subjects, at: 0, isLeaving: true });
    else if (subjects === 'unknown') this.#turnBack(entry);
  }

  /** One that is at its end before all its subjects were taken in: those that were go out again. */
  #turnBack(entry: Entry): void {
    const chore = this.#chores.find((one) => one.entry === entry);
    if (chore === undefined) return;
    this.#learned -= chore.subjects.length - chore.at;
    chore.subjects = chore.subjects.subarray(0, chore.at);
    chore.at = 0;
    chore.isLeaving = true;
  }

  #renew(entry: Entry, header: Header): void {
    const hasMoved = entry.places.join() !== this.#placesOf(header).join();
    if (!hasMoved && isSame(entry.header.subjects, header.subjects)) {
      entry.header = header;
      return;
    }
    this.#remove(entry);
    this.#add(header);
  }
}

/** A header that was read anew has a list of its own: the same one goes in again only when it is another one. */
function isSame(one: Header['subjects'], other: Header['subjects']): boolean {
  if (one === null || other === null || Array.isArray(one) || Array.isArray(other)) return one === other;
  return one.digest === other.digest;
}

function join<Key>(chains: Chains<Key>, key: Key, entry: Entry): void {
  const chain = chains.get(key);
  if (chain === undefined) {
    chains.set(key, entry);
    return;
  }
  const all = Array.isArray(chain) ? chain : [chain];
  if (all !== chain) chains.set(key, all);
  const [first] = all;
  insert(all, entry);
  if (all[0] !== entry) entry.heldBy++;
  else if (first !== undefined) first.heldBy++;
}

function leave<Key>(chains: Chains<Key>, key: Key, entry: Entry): void {
  const chain = chains.get(key);
  if (chain === entry) chains.delete(key);
  if (!Array.isArray(chain)) return;
  const [first] = chain;
  chain.splice(chain.indexOf(entry), 1);
  const [next] = chain;
  if (first === entry && next !== undefined) next.heldBy--;
  if (next === undefined) chains.delete(key);
}

/** By sequence number; nearly always at the end. */
function insert(entries: Entry[], entry: Entry): void {
  let at = entries.length;
  while (at > 0 && (entries[at - 1]?.sequence ?? 0) > entry.sequence) at--;
  entries.splice(at, 0, entry);
}
