import type { PullOptions } from '../model/client.js';
import { selectorFilter } from './pull-filter.js';
import type { PullList } from './pull-list.js';
import { replicateOnce, type ReplicateParts } from './replicate-once.js';
import type { Errand } from './transfer.js';
import type { Watch } from './watch.js';

export interface PullParts extends Omit<ReplicateParts, 'memory'> {
  /** Default: everything. */
  readonly pull?: PullOptions | undefined;
  readonly list: PullList;
}

/** Brings the server's documents here. One pull each time it is wanted. */
export class Pull {
  readonly #parts: PullParts & ReplicateParts;
  #wanted = true;

  constructor(parts: PullParts) {
    this.#parts = { ...parts, memory: { serverId: undefined } };
  }

  /** The next step brings what is new. */
  want(): void {
    this.#wanted = true;
  }

  /** `afterPull` is called when everything was brought. */
  errand(afterPull: () => void): Errand<Record<string, never>, true> {
    return {
      name: 'pull',
      initial: {},
      parse: () => ({}),
      next: () => Promise.resolve(this.#wanted ? true : undefined),
      carry: async (_step, data, watch) => {
        this.#wanted = false;
        // Also when a call hangs that cannot be ended: then nothing follows here.
        const again = (): void => {
          this.#wanted = true;
        };
        watch.signal.addEventListener('abort', again);
        try {
          await this.#pull(watch);
          if (!watch.signal.aborted) afterPull();
          return { data, transferred: watch.brought };
        } catch (error) {
          again();
          throw error;
        } finally {
          watch.signal.removeEventListener('abort', again);
        }
      },
    };
  }

  async #pull(watch: Watch): Promise<void> {
    const { pull, list } = this.#parts;
    if (pull === undefined) return replicateOnce(this.#parts, watch);
    if ('selector' in pull) return replicateOnce(this.#parts, watch, { filter: selectorFilter(pull.selector) });
    const { docIds } = pull;
    const ids = typeof docIds === 'function' ? await docIds() : docIds;
    return list.pull(ids, (how) => replicateOnce(this.#parts, watch, how));
  }
}
