import type { FakeClock } from '../fake-clock.js';
import { showsEffect } from './actions.js';
import type { FaultBook } from './fault-book.js';
import type { JsonObject } from './json.js';
import type { Case } from './read.js';
import type { ClockFault, ProcessFault } from './schema.js';
import type { Tab } from './tab.js';

type ClockStep = 'clock-jump' | 'sleep';
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
  readonly #happened = new Set<ClockFault>();
  readonly #clockSteps: string[] = [];
  readonly #had = new Map<ProcessFault, Set<string>>();

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
      if (this.faults.occurs(fault) !== 'now' || this.#hadIt(fault, moment)) continue;
      for (const tab of moment.tab === undefined ? this.tabs() : [moment.tab]) this.#kill(tab, fault);
    }
  }

  /** The step `restart`: whether a process fault stands behind it, so that the process dies instead of closing. */
  get restartKills(): boolean {
    return this.faults.of('process').some((fault) => fault.do.restart === true || fault.do.kill === true);
  }

  /** Clock faults that wait for so many attempts, and that no step stands for; says whether one happened. */
  afterAttempts(attempts: number): boolean {
    if (!this.faults.armed || attempts === 0) return false;
    const ready = this.#clockFaults().filter(
      (fault) => this.#stepOf(fault) === undefined && attempts >= (fault.when.after_attempt ?? 1),
    );
    for (const fault of ready) this.#happen(fault);
    return ready.length > 0;
  }

  /** The step `clock-jump` or `sleep`: the next fault of that nature happens, at the last such step all that are left. */
  clockStep(word: ClockStep): void {
    this.#clockSteps.push(word);
    const open = this.#clockFaults().filter((fault) => this.#stepOf(fault) === word);
    const count = this.given.steps.filter((step) => step.do === word).length;
    const isLast = this.#clockSteps.filter((one) => one === word).length >= count;
    for (const fault of isLast ? open : open.slice(0, 1)) this.#happen(fault);
  }

  /** The clock faults that have not happened: each happens once. */
  #clockFaults(): readonly ClockFault[] {
    return this.faults.of('clock').filter((fault) => !this.#happened.has(fault));
  }

  /** The step that stands for a clock fault, if the case has it. */
  #stepOf({ when, do: todo }: ClockFault): ClockStep | undefined {
    const isSleep = todo.freeze_timers_s !== undefined;
    const own: ClockStep = isSleep ? 'sleep' : 'clock-jump';
    if (this.#hasStep(own)) return own;
    const other: ClockStep = isSleep ? 'clock-jump' : 'sleep';
    return when.after_attempt === undefined && this.#hasStep(other) ? other : undefined;
  }

  #happen(fault: ClockFault): void {
    this.#happened.add(fault);
    const { wall_jump_s: jumpS, freeze_timers_s: frozenS } = fault.do;
    if (jumpS !== undefined) this.clock.jumpWall(jumpS * 1000);
    if (frozenS !== undefined) {
      this.clock.freezeTimers(frozenS * 1000);
      this.faults.reach('sleep');
    }
    this.reach('after-clock-jump');
  }

  /**
   * A fault that says nothing of occurrences happens once for each moment: what is published again after the restart is
   * the same moment, and a process that is killed there each time would never come to an end.
   */
  #hadIt(fault: ProcessFault, { docs, keys }: Moment): boolean {
    const { key, nth, from_nth: fromNth, times } = fault.when;
    if ((nth ?? fromNth ?? times) !== undefined) return false;
    const what = key ?? keys?.join() ?? docs?.map((doc) => `${String(doc['_id'])} ${String(doc['_rev'])}`).join();
    if (what === undefined) return false;
    const known = this.#had.get(fault) ?? new Set();
    this.#had.set(fault, known);
    const isKnown = known.has(what);
    known.add(what);
    return isKnown;
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
