/** Milliseconds of each thing that was measured. */
export type Times = Record<string, number>;

/** What a page can be asked to measure; each round on databases of its own. */
export type Steps = Record<string, (round: number) => Promise<Times>>;

declare global {
  interface Window {
    benchSteps: Steps;
  }
}

export async function timed(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

/** Tasks over 50 ms on the main thread, as the browser reports them. */
export class LongTasks {
  #longest = 0;
  readonly #observer = new PerformanceObserver((list) => {
    this.#note(list.getEntries());
  });

  constructor() {
    this.#observer.observe({ type: 'longtask' });
  }

  /** Milliseconds; 0 when none was over 50. */
  async longest(): Promise<number> {
    // The last task is reported after it ended.
    await new Promise((resolve) => setTimeout(resolve));
    this.#note(this.#observer.takeRecords());
    this.#observer.disconnect();
    return this.#longest;
  }

  #note(entries: readonly PerformanceEntry[]): void {
    for (const { duration } of entries) this.#longest = Math.max(this.#longest, duration);
  }
}
