import type { Presence } from '@afield/client';

/** Whether a person looks at the page, as a test wishes; what is noted stays when a client is killed and opened again. */
export class FakePresence implements Presence {
  #visible: boolean;
  readonly #notes = new Map<string, string>();
  readonly #listeners = new Set<() => void>();

  constructor(visible = true) {
    this.#visible = visible;
  }

  visible(): boolean {
    return this.#visible;
  }

  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  note(name: string, text: string): void {
    this.#notes.set(name, text);
  }

  noted(name: string): string | undefined {
    return this.#notes.get(name);
  }

  forget(name: string): void {
    this.#notes.delete(name);
  }

  /** The page comes into view or goes out of it. */
  set(visible: boolean): void {
    this.#visible = visible;
    for (const listener of [...this.#listeners]) listener();
  }

  /** How many still listen; none should after `close()`. */
  get listeners(): number {
    return this.#listeners.size;
  }
}
