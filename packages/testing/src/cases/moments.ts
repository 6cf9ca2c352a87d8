import type { FakeClock } from '../fake-clock.js';
import { showsEffect } from './actions.js';
import type { FaultBook } from './fault-book.js';
import type { JsonObject } from './json.js';
import type { Case } from './read.js';
import type { ProcessFault } from './schema.js';
import type { Tab } from './tab.js';

type Point = NonNullable<ProcessFault['when']['point']>;

/** Where something happened: the documents that were written or the keys that were published, the tab that did it. */
export interface Moment {
  readonly docs?: readonly JsonObject[];
  readonly keys?: readonly string[];
  readonly tab?: Tab;
}

/** Makes the faults of clock and process happen: at their points, or at the step that stands for them. */
export class Moments {
  /** Tabs that were killed and come back as soon as the world is at rest. */
  readonly restarts: Tab[] = [];
  #clockDone = false;

  constructor(
    private readonly given: Case,
    private readonly faults: FaultBook,
    private readonly clock: FakeClock,
    private readonly tabs: () => readonly Tab[],
  ) {}

  /** Kills what a process fault of this point says; a tab that is to come back is put on `restarts`. */
  reach(point: Point, moment: Moment = {}): void {
    for (const fault of this.faults.of('process')) {
      if (fault.when.point !== point || !this.#concerns(fault, moment)) continue;
      if (fault.do.restart === true && this.#hasStep('restart')) continue;
      if (this.faults.occurs(fault) !== 'now') continue;
      for (const tab of moment.tab === undefined ? this.tabs() : [moment.tab]) this.#kill(tab, fault);
    }
  }

  /** The step `restart`: whether a process fault stands behind it, so that the process dies instead of closing. */
  get restartKills(): boolean {
    return this.faults.of('process').some((fault) => fault.do.restart === true || fault.do.kill === true);
  }

  /** The clock fault that waits for so many attempts, if no step stands for it. */
  afterAttempts(attempts: number): boolean {
    const waits = this.faults.of('clock').filter((fault) => (fault.when.after_attempt ?? 0) <= attempts);
    if (this.#clockDone || waits.length === 0 || this.#hasStep('clock-jump') || this.#hasStep('sleep')) return false;
    if (attempts === 0) return false;
    this.clockStep();
    return true;
  }

  /** The clock fault happens now. */
  clockStep(): void {
    if (this.#clockDone) return;
    this.#clockDone = true;
    for (const fault of this.faults.of('clock')) {
      if (fault.do.wall_jump_s !== undefined) this.clock.jumpWall(fault.do.wall_jump_s * 1000);
      if (fault.do.freeze_timers_s !== undefined) this.clock.freezeTimers(fault.do.freeze_timers_s * 1000);
    }
    this.reach('after-clock-jump');
  }

  #kill(tab: Tab, fault: ProcessFault): void {
    if (!tab.alive) return;
    tab.kill();
    if (fault.do.restart === true) this.restarts.push(tab);
  }

  #concerns(fault: ProcessFault, { docs, keys, tab }: Moment): boolean {
    const { key, tab: wanted } = fault.when;
    if (key !== undefined) {
      // Of several operations on one document it is the one whose change the document shows.
      const isWritten = this.given.operations.some(
        (one) => one.key === key && docs?.some((doc) => doc['_id'] === one.id && showsEffect(one, doc)) === true,
      );
      if (!isWritten && keys?.includes(key) !== true) return false;
    }
    // Whoever works on a batch is the leader.
    return wanted === undefined || wanted === 'leader' || tab?.number === Number(wanted);
  }

  #hasStep(word: string): boolean {
    return this.given.steps.some((step) => step.do === word);
  }
}
