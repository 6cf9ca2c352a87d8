import { setTimeout as wait } from 'node:timers/promises';
import type { Browser } from '../real-browser/browser.js';
import { Lives, within } from '../real-browser/lives.js';
import { seededRandom } from '../real-browser/seeded-random.js';
import { killedName, undisturbedName, type Config, type Mistake, type Told } from './messages.js';
import { readInAll, wrongInBuilds, type Builds } from './wrong-in-builds.js';

/** How long any one step is waited for. Milliseconds. */
const longestMs = 300_000;
/** A kill comes at most so long after the row that it waits for was read: while a batch is read, stored, or done. */
const latestKillMs = 40;

export interface IndexKillOptions {
  readonly documents: number;
  readonly kills: number;
  readonly seed: number;
  readonly mistake?: Mistake | undefined;
  readonly say: (line: string) => void;
}

export interface IndexKillReport {
  readonly builds: Builds;
  /** Empty when all is well. */
  readonly wrong: readonly string[];
}

/** Runs that prove nothing, because the browser has lost its databases, before it is given up. */
const mostLosses = 3;

/** The browser has lost the databases of the page: nothing is proved then. */
class LostDatabasesError extends Error {
  override readonly name = 'LostDatabasesError';
}

/**
 * A browser is killed while it builds an index, and starts again until the index is ready; then all rows are compared. A
 * Chromium that is killed sometimes throws all databases of a page away when it starts again: then it begins on a new profile.
 */
export async function indexKill(options: IndexKillOptions): Promise<IndexKillReport> {
  for (let losses = 0; ; losses += 1) {
    const lives = await Lives.prepare<Config, Told>('afield-index', 'index-kill/page.ts');
    try {
      return await new IndexKill(options, lives).run();
    } catch (error) {
      if (!(error instanceof LostDatabasesError) || losses === mostLosses) throw error;
      options.say(`${error.message} It begins again.`);
    } finally {
      await lives.close();
    }
  }
}

class IndexKill {
  readonly #lives: string[][] = [];
  readonly #undisturbed: string[] = [];
  readonly #rows = { killed: [] as readonly string[], undisturbed: [] as readonly string[] };
  readonly #wrong: string[] = [];
  readonly #random: () => number;
  /** Where the changes of the documents ended in the life before. */
  #sequence = 0;
  #lose: (error: Error) => void = () => undefined;
  /** Rejects when the browser has lost its databases. */
  readonly #lost = new Promise<never>((_resolve, reject) => (this.#lose = reject));

  constructor(
    private readonly options: IndexKillOptions,
    private readonly pages: Lives<Config, Told>,
  ) {
    this.#random = seededRandom(options.seed);
    this.#lost.catch(() => undefined); // said by who waits
    pages.host.listen((told) => {
      this.#hear(told);
    });
  }

  async run(): Promise<IndexKillReport> {
    const { documents, kills, say } = this.options;
    await (await this.#whole('write')).kill();
    say(`${String(documents)} documents are written`);
    const moments = Array.from({ length: kills }, () => Math.floor(this.#random() * documents)).sort((a, b) => a - b);
    for (const moment of moments) await this.#killAt(moment);
    this.#lives.push([]);
    await (await this.#whole('build')).kill();
    say(`the index is ready: ${this.#sofar()}`);
    await (await this.#whole('compare')).kill();
    const builds = { documents, lives: this.#lives, undisturbed: this.#undisturbed, rows: this.#rows };
    return { builds, wrong: [...this.#wrong, ...wrongInBuilds(builds)] };
  }

  /** A life of the build that ends a little after it has read so many rows in all. */
  async #killAt(moment: number): Promise<void> {
    this.#lives.push([]);
    const isThere = this.pages.says((told) => 'done' in told || ('read' in told && this.#reached() > moment));
    const browser = await this.#begin('build');
    await this.#waitFor(isThere, `row ${String(moment)} to be read`);
    await wait(this.#random() * latestKillMs);
    await browser.kill();
    this.options.say(`killed: ${this.#sofar()}`);
  }

  /** Starts the browser. Resolves when its page has done all. */
  async #whole(task: Config['task']): Promise<Browser> {
    const done = this.pages.says((told) => 'done' in told);
    const browser = await this.#begin(task);
    await this.#waitFor(done, `"${task}" to be done`);
    return browser;
  }

  #begin(task: Config['task']): Promise<Browser> {
    const { documents, mistake } = this.options;
    return this.pages.begin({ task, documents, mistake }, (told) => 'alive' in told);
  }

  async #waitFor(promise: Promise<unknown>, what: string): Promise<void> {
    await within(longestMs, Promise.race([promise, this.#lost]), () => `${what}: ${this.#sofar()}`);
  }

  #hear(told: Told): void {
    if ('alive' in told) {
      if (told.sequence < this.#sequence) {
        this.#lose(new LostDatabasesError('The browser has lost the databases of the page.'));
      }
      this.#sequence = told.sequence;
    } else if ('read' in told) {
      (told.by === killedName ? this.#lives.at(-1) : this.#undisturbed)?.push(...told.read);
    } else if ('rows' in told) {
      this.#rows[told.of === undisturbedName ? 'undisturbed' : 'killed'] = told.rows;
    } else if ('problem' in told) this.#wrong.push(`an error of the page: ${told.problem}`);
  }

  /** Different rows that were read. */
  #reached(): number {
    return new Set(this.#lives.flat()).size;
  }

  #sofar(): string {
    return `${String(readInAll(this.#lives))} rows read in all, ${String(this.#lives.at(-1)?.length ?? 0)} of them now`;
  }
}
