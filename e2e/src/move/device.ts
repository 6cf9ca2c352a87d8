import type { Browser } from '../real-browser/browser.js';
import { Lives, within } from '../real-browser/lives.js';
import type { Config, LongTask, Shown, Told } from './messages.js';

/** How long any one state is waited for. Milliseconds. */
const longestMs = 300_000;

type Said<Field extends string> = Extract<Told, Readonly<Record<Field, unknown>>>;

/** The device over all lives of its browser: what it is told, and what it shows. */
export class Device {
  readonly longTasks: LongTask[] = [];
  /** What must not be, as far as the device shows it. */
  readonly wrong: string[] = [];
  kills = 0;
  #config: Config;
  #browser: Browser | undefined;
  #shown: Shown | undefined;
  #store: string | undefined;

  private constructor(
    private readonly lives: Lives<Config, Told>,
    config: Config,
  ) {
    this.#config = config;
    lives.host.listen((told) => {
      this.#hear(told);
    });
  }

  static async prepare(config: Config): Promise<Device> {
    return new Device(await Lives.prepare<Config, Told>('afield-move', 'move/page.ts'), config);
  }

  /** What it has shown last in this life. */
  get shown(): Shown | undefined {
    return this.#shown;
  }

  /** Starts the browser. Resolves when its page has begun. */
  async begin(): Promise<void> {
    this.#shown = undefined;
    this.#browser = await this.lives.begin(this.#config, (told) => 'alive' in told);
  }

  /** SIGKILL to all processes of the browser. */
  async kill(): Promise<void> {
    await this.#browser?.kill();
    this.kills += 1;
  }

  close(): Promise<void> {
    return this.lives.close();
  }

  /** From now on the page is to do this, in this life and the next ones. */
  tell(change: Partial<Config>): void {
    this.#config = { ...this.#config, ...change };
    this.lives.host.config = this.#config;
  }

  /** Tells the page, and waits until it says what it was asked for. */
  async ask<Field extends 'dryRun' | 'confirmed' | 'rows'>(
    change: Partial<Config>,
    field: Field,
  ): Promise<Said<Field>> {
    const says = this.lives.says((told): told is Said<Field> => field in told);
    this.tell(change);
    return this.waitFor(says, field);
  }

  /** Waits until it shows what is asked for; what it showed before does not count. */
  async until(isSo: (shown: Shown) => boolean, what: string): Promise<void> {
    await this.waitFor(
      this.lives.says((told) => 'shown' in told && isSo(told.shown)),
      what,
    );
  }

  waitFor<Value>(promise: Promise<Value>, what: string): Promise<Value> {
    return within(longestMs, promise, () => `${what}; the device shows ${JSON.stringify(this.#shown)}`);
  }

  #hear(told: Told): void {
    if ('alive' in told) {
      if (this.#store !== undefined && this.#store !== told.alive)
        this.wrong.push(
          `the browser has lost the databases of the page (${String(told.documents)} documents are left)`,
        );
      this.#store = told.alive;
    } else if ('shown' in told) this.#shown = told.shown;
    else if ('longTasks' in told) this.longTasks.push(...told.longTasks);
    else if ('problem' in told) this.wrong.push(`an error of the page: ${told.problem}`);
  }
}
