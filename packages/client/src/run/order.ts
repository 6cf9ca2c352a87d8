import { endStates, type Target } from '../model/states.js';
import { sequenceOf, type Header } from '../queue/stored.js';
import type { Subjects } from '../queue/subjects.js';

/** A bulk operation that is not at its end. */
interface Entry {
  readonly sequence: number;
  header: Header;
  /** `unknown`: they are in the store, not read yet, and count as everything. */
  subjects: Subjects | 'unknown';
  /** How many of its subjects, and its lane, have someone else before it. */
  heldBy: number;
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
 * target, or its lane. It follows the headers as they change, so that a look at a thousand of them that wait costs no
 * more than the thousand. What it does not know holds back too much, never too little.
 */
export class Order {
  readonly #entries = new Map<number, Entry>();
  readonly #live: Readonly<Record<Target, Entry[]>> = { local: [], server: [] };
  readonly #subjects: Readonly<Record<Target, Chains<number>>> = { local: new Map(), server: new Map() };
  readonly #lanes: Chains<string> = new Map();
  #learned = 0;

  /** How many subjects are kept that `learn` has brought. */
  get learned(): number {
    return this.#learned;
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

  /** The subjects that a header keeps beside itself. */
  learn(header: Header, subjects: Uint32Array): void {
    const entry = this.#entries.get(sequenceOf(header._id));
    if (entry?.subjects !== 'unknown' || !isSame(entry.header.subjects, header.subjects)) return;
    this.#replace(entry, entry.header, subjects);
  }

  /** The first bulk operation of a target that may run now. */
  choose(target: Target, mayRun: (header: Header, sequence: number) => boolean): Choice {
    const unknown: Header[] = [];
    const undecided: Header[] = [];
    let holdsAll = false;
    let isFirst = true;
    for (const entry of this.#live[target]) {
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

  #add(header: Header, learned?: Uint32Array): void {
    const { subjects } = header;
    const entry: Entry = {
      sequence: sequenceOf(header._id),
      header,
      subjects: learned ?? (subjects === null || Array.isArray(subjects) ? subjects : 'unknown'),
      heldBy: 0,
    };
    this.#entries.set(entry.sequence, entry);
    insert(this.#live[header.target], entry);
    this.#learned += learned?.length ?? 0;
    this.#eachChain(entry, join);
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.sequence);
    const live = this.#live[entry.header.target];
    live.splice(live.indexOf(entry), 1);
    if (entry.subjects instanceof Uint32Array) this.#learned -= entry.subjects.length;
    this.#eachChain(entry, leave);
  }

  #renew(entry: Entry, header: Header): void {
    if (isSame(entry.header.subjects, header.subjects)) entry.header = header;
    else this.#replace(entry, header);
  }

  #replace(entry: Entry, header: Header, learned?: Uint32Array): void {
    this.#remove(entry);
    this.#add(header, learned);
  }

  #eachChain(entry: Entry, change: <Key>(chains: Chains<Key>, key: Key, entry: Entry) => void): void {
    const { lane, target } = entry.header;
    if (lane !== null) change(this.#lanes, lane, entry);
    if (entry.subjects === null || entry.subjects === 'unknown') return;
    for (const subject of entry.subjects) change(this.#subjects[target], subject, entry);
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
