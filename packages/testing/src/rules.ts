/** When a rule acts, among the calls that it is about. They are counted for each rule, from 1. */
export interface Turn {
  /** Only this one. */
  readonly nth?: number;
  /** This one and the later ones. */
  readonly fromNth?: number;
  /** So many, from the first or from `fromNth`. */
  readonly times?: number;
}

/** A rule in force. */
export interface ActiveRule<Rule> {
  readonly rule: Rule;
  /** Resolves when the rule is taken away. */
  readonly over: Promise<void>;
}

/** Rules in the order in which they were added: counts what each one is about, and says whose turn it is. */
export class Rules<Rule extends { readonly when?: Turn }> {
  readonly #active = new Map<Rule, { seen: number; readonly over: Promise<void>; readonly end: () => void }>();
  #enabled = true;

  constructor(rules: readonly Rule[] = []) {
    for (const rule of rules) this.add(rule);
  }

  /** False: nothing happens and nothing is counted. What a rule holds back goes on. */
  get enabled(): boolean {
    return this.#enabled;
  }

  set enabled(enabled: boolean) {
    this.#enabled = enabled;
    if (enabled) return;
    for (const [rule, { end }] of this.#active) {
      end();
      this.#active.set(rule, { ...began(), seen: this.#active.get(rule)?.seen ?? 0 });
    }
  }

  /** Adds a rule; the answer takes it away again. */
  add(given: Rule): () => void {
    // A copy: the same data may be added twice, and the caller may change its own.
    const rule = structuredClone(given);
    this.#active.set(rule, { ...began(), seen: 0 });
    return () => {
      this.#active.get(rule)?.end();
      this.#active.delete(rule);
    };
  }

  /** Takes all rules away. */
  clear(): void {
    for (const { end } of this.#active.values()) end();
    this.#active.clear();
  }

  /** Counts a call in every rule that is about it, and gives those whose turn it is. */
  take(isAbout: (rule: Rule) => boolean): readonly ActiveRule<Rule>[] {
    if (!this.#enabled) return [];
    const taken: ActiveRule<Rule>[] = [];
    for (const [rule, state] of this.#active) {
      if (!isAbout(rule)) continue;
      state.seen += 1;
      if (isItsTurn(rule.when ?? {}, state.seen)) taken.push({ rule, over: state.over });
    }
    return taken;
  }
}

/** The switchboard of a book of rules, as whoever uses it sees it. */
export interface Switchboard<Rule> {
  /** False: no rule acts and none counts. */
  enabled: boolean;
  /** Adds a rule; the answer takes it away again. */
  add(rule: Rule): () => void;
  /** Takes all rules away. */
  clear(): void;
}

/** The switchboard of this book, without what is for the faulty thing itself. */
export function switchboard<Rule extends { readonly when?: Turn }>(book: Rules<Rule>): Switchboard<Rule> {
  return {
    get enabled() {
      return book.enabled;
    },
    set enabled(enabled) {
      book.enabled = enabled;
    },
    add: (rule) => book.add(rule),
    clear: () => {
      book.clear();
    },
  };
}

/** Whether a text ends like a pattern in which `*` stands for any text. */
export function endsLike(text: string, pattern: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
  return new RegExp(`${parts.join('.*')}$`, 's').test(text);
}

function began(): { over: Promise<void>; end: () => void } {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => (end = resolve));
  return { over, end };
}

function isItsTurn({ nth, fromNth = 1, times }: Turn, occurrence: number): boolean {
  if (nth !== undefined && occurrence !== nth) return false;
  return occurrence >= fromNth && (times === undefined || occurrence < fromNth + times);
}
