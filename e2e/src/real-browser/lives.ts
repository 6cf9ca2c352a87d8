import { temporaryFolder, type TemporaryFolder } from '@afield/devserver';
import { Browser } from './browser.js';
import { chromiumPath } from './executable.js';
import { PageHost } from './page-host.js';

/** The lives of one page in a Chromium with its profile on disk: what one has stored, the next one finds. */
export class Lives<Config, Told> {
  readonly #browsers: Browser[] = [];

  private constructor(
    readonly host: PageHost<Config, Told>,
    readonly executable: string,
    private readonly profile: TemporaryFolder,
  ) {}

  /**
   * @param name of the profile's folder, letters and dashes
   * @param page its file in `src`, such as `kill/page.ts`
   */
  static async prepare<Config, Told>(name: string, page: string): Promise<Lives<Config, Told>> {
    const executable = chromiumPath();
    const host = await PageHost.start<Config, Told>(page);
    return new Lives(host, executable, await temporaryFolder(name));
  }

  /** Starts the browser. Resolves when its page has said that it has begun. */
  async begin(config: Config, hasBegun: (told: Told) => boolean): Promise<Browser> {
    this.host.config = config;
    const begun = this.says(hasBegun);
    const browser = new Browser(this.executable, this.profile.folder, this.host.address);
    this.#browsers.push(browser);
    await within(60_000, begun, () => 'the page to begin');
    return browser;
  }

  /** What the page says next of this kind. */
  says<Kind extends Told>(isIt: (told: Told) => told is Kind): Promise<Kind>;
  says(isIt: (told: Told) => boolean): Promise<Told>;
  says(isIt: (told: Told) => boolean): Promise<Told> {
    return new Promise((resolve) => {
      const stop = this.host.listen((told) => {
        if (!isIt(told)) return;
        stop();
        resolve(told);
      });
    });
  }

  /** Kills what still lives, and removes the profile. */
  async close(): Promise<void> {
    for (const browser of this.#browsers) await browser.kill();
    await this.host.close();
    await this.profile.remove();
  }
}

/** Rejects when the promise does not settle in time; `what` says what was waited for. Milliseconds. */
export async function within<Value>(ms: number, promise: Promise<Value>, what: () => string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`Waited ${String(ms / 1000)} s for ${what()}.`));
    }, ms);
  });
  return Promise.race([promise, late]).finally(() => {
    clearTimeout(timer);
  });
}
