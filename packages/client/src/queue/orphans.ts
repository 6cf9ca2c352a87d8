import type { TabLock } from '../tabs/tab-lock.js';
import type { Quarantine } from './quarantine.js';
import type { Queue } from './queue.js';
import { removed } from './stored-docs.js';
import { namesOf, rootsOf } from './remains.js';
import { headerDoc, type Header } from './stored.js';

/** Payloads, digests, requests of plans: written before the header that makes them count. */
const kinds = ['p', 'd', 'q'] as const;
const perRead = 500;

export interface OrphansParts {
  readonly queue: Queue;
  readonly quarantine: Quarantine;
  readonly tabLock: TabLock;
  readonly closed: AbortSignal;
  /** Gives the page a turn in the middle of long work. */
  readonly breathe: () => Promise<void>;
}

/**
 * Content that nothing names: its tab ended before it had written the header, or has not written it yet. Which of both is
 * said by the tab's lock alone: in an engine without locks such content stays.
 */
export class Orphans {
  readonly #parts: OrphansParts;
  readonly #sweeping = new Map<string, Promise<void>>();

  constructor(parts: OrphansParts) {
    this.#parts = parts;
  }

  /** Other tabs with content that nothing names now. */
  async tabs(): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    const isNamed = this.#named(this.#parts.queue.headers.all());
    for (const kind of kinds) {
      await this.#each(`${kind}:`, (page) => {
        for (const { id } of page) if (!isNamed(id)) found.add(tabOf(id));
        return Promise.resolve();
      });
    }
    found.delete(this.#parts.tabLock.tab);
    return found;
  }

  /** Removes such content of a tab as soon as its lock proves that it is gone; perhaps never. */
  sweepWhenGone(tab: string): void {
    if (this.#sweeping.has(tab)) return;
    const sweeping = this.#sweep(tab)
      .catch(() => undefined) // the store does not work, or the client was closed: it is found again at the next look
      .finally(() => this.#sweeping.delete(tab));
    this.#sweeping.set(tab, sweeping);
  }

  async idle(): Promise<void> {
    await Promise.all(this.#sweeping.values());
  }

  async #sweep(tab: string): Promise<void> {
    const { queue, quarantine, tabLock, closed } = this.#parts;
    if (!(await tabLock.whenFree(tab, closed))) return;
    // From now on nothing of it is written. What it has written in its last moment counts.
    const headers = await queue.docs.readRange('h:', headerDoc);
    await quarantine.load();
    const isNamed = this.#named(headers);
    for (const kind of kinds) {
      await this.#each(`${kind}:${tab}:`, async (page) => {
        const gone = page.filter(({ id }) => !isNamed(id));
        if (gone.length > 0) await queue.docs.write(gone.map(({ id, rev }) => removed(id, rev)));
      });
    }
  }

  async #each(
    prefix: string,
    visit: (page: readonly { readonly id: string; readonly rev: string }[]) => Promise<void>,
  ): Promise<void> {
    const { queue, breathe, closed } = this.#parts;
    for (let from = prefix; !closed.aborted;) {
      const page = await queue.docs.names(from, `${prefix}\uffff`, perRead);
      await visit(page);
      const last = page[page.length - 1];
      if (last === undefined || page.length < perRead) return;
      from = `${last.id}\u0000`;
      await breathe();
    }
  }

  /** Whether a header, or a conflict in quarantine, names this content. */
  #named(headers: readonly Header[]): (id: string) => boolean {
    const contents = [...headers, ...this.#parts.quarantine.contents()];
    const names = new Set(contents.flatMap((content) => namesOf(rootsOf(content))));
    return (id) => names.has(id) || names.has(id.slice(0, id.lastIndexOf(':') + 1));
  }
}

/** `p:<tab>:…` */
function tabOf(id: string): string {
  return id.split(':')[1] ?? '';
}
