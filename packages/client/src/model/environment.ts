/** Two clocks and one kind of timer. Units: milliseconds. */
export interface Clock {
  /** Wall clock, since 1970; may jump both ways. */
  wall(): number;
  /** Never goes back; says nothing across restarts; may stand still while the device sleeps. */
  monotonic(): number;
  setTimer(run: () => void, delayMs: number): unknown;
  clearTimer(timer: unknown): void;
}

/** One holder at a time, per name, for all tabs of a browser: Web Locks, or what stands in for them. */
export interface Locks {
  /** Runs `whileHeld` when the lock is ours and keeps it until its promise settles. Rejects when `signal` aborts first. */
  request(name: string, signal: AbortSignal, whileHeld: () => Promise<void>): Promise<void>;
}

/** Calls between the tabs of one store: that there is news, or (for events) what it is. */
export interface Channel {
  /** Tells all other tabs. `message` is plain data that can be cloned. */
  announce(message?: unknown): void;
  close(): void;
}

/** What the browser says about the network. */
export interface Connectivity {
  online(): boolean;
  /** Calls back when the network came or went, or the page became visible; answers with a function that ends it. */
  subscribe(changed: () => void): () => void;
}

/** Whether a person is looking at the page, and a note that outlives the process (R16). */
export interface Presence {
  /** True while the page is visible. */
  visible(): boolean;
  /** Calls back when `visible` has changed; answers with a function that ends it. */
  subscribe(changed: () => void): () => void;
  /**
   * Keeps a short text under a name: it must be there when the process ends a moment later. A promise, if it answers with
   * one, resolves when it is; nothing is run before.
   */
  note(name: string, text: string): unknown;
  /** The text that was kept last; undefined where there is none, or the engine cannot keep any. */
  noted(name: string): string | undefined | Promise<string | undefined>;
  /** Removes the text, and its name (S7). Without it an empty page of notes may stay on the device. */
  forget?(name: string): unknown;
}

/** The effects that the client needs from outside. Each can be replaced in tests. */
export interface Environment {
  readonly clock: Clock;
  readonly fetch: typeof fetch;
  readonly locks: Locks;
  readonly connectivity: Connectivity;
  readonly presence: Presence;
  /** Opens the channel of a store; `news` is called when another tab announces, with what it said. */
  readonly channel: (name: string, news: (message?: unknown) => void) => Channel;
  /** Where indexes are stored; undefined where the engine has none. */
  readonly indexedDB: IDBFactory | undefined;
  /** Gives the page a turn in the middle of long work. */
  readonly breathe: () => Promise<void>;
  /** 0 ≤ random() < 1. */
  readonly random: () => number;
  /** A new name that no one else has. */
  readonly newId: () => string;
  /** Where warnings go; default: nowhere. Never with the content of a document. */
  readonly warn: (line: string) => void;
}
