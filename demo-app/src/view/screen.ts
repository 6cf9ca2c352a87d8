import type { FailedOperation } from '@afield/client';
import { render } from 'lit';
import { combineLatest, fromEvent, interval, merge } from 'rxjs';
import { auditTime, distinctUntilChanged, filter, switchMap } from 'rxjs/operators';
import type { Demo } from '../demo.js';
import { MoveError } from '../plan-move.js';
import { Conflicts, noConflicts } from './conflicts-state.js';
import { Decisions, nothingDecided } from './decisions.js';
import { page } from './page.js';
import type { Actions, MoveState, Tab, ViewState } from './state.js';
import { rowsShown } from './tree.js';

const redrawEveryMs = 150;
const readOutageEveryMs = 3000;
const moreRows = 100;
const failuresAtOnce = 50;

/** Draws the whole page from one state; lit changes only what differs. */
export class Screen implements Actions {
  readonly decide: Decisions;
  readonly conflicts: Conflicts;
  #state: ViewState;
  #isDrawn = true;
  #outageReading = 0;
  /** What had the focus before a dialog. */
  #opener: Element | null = null;

  constructor(
    private readonly demo: Demo,
    private readonly root: HTMLElement,
  ) {
    this.#state = {
      catalogue: demo.catalogue,
      status: undefined,
      bulkOperations: [],
      failures: [],
      events: [],
      conflicts: noConflicts,
      importState: { state: 'none' },
      outage: 'unknown',
      now: Date.now(),
      tab: 'places',
      open: new Set(),
      chosen: new Set(),
      shown: new Map(),
      move: undefined,
      failuresShown: failuresAtOnce,
      isQueuingFailures: false,
      decisions: nothingDecided,
      notice: undefined,
    };
    this.conflicts = new Conflicts(
      demo,
      () => this.#state.conflicts,
      (change) => this.#change({ conflicts: { ...this.#state.conflicts, ...change } }),
    );
    this.decide = new Decisions(
      demo.client,
      () => this.#state.decisions,
      (change) => this.#change({ decisions: { ...this.#state.decisions, ...change } }),
      (error) => this.#notice(error),
    );
  }

  show(): void {
    const { client, catalogue, import$ } = this.demo;
    combineLatest({
      status: client.status$,
      bulkOperations: client.bulkOperations$,
      failures: client.failures$,
      importState: import$,
      version: catalogue.version$,
    })
      .pipe(auditTime(redrawEveryMs))
      .subscribe({
        next: ({ status, bulkOperations, failures, importState }) =>
          this.#change({ status, bulkOperations, failures, importState, now: Date.now() }),
        error: (error: unknown) => this.#notice(error),
      });
    // What was decided leaves the open failures: then there is something new to look at.
    client.failures$
      .pipe(
        distinctUntilChanged(areSame),
        switchMap(() => client.listFailures({ resolved: true })),
      )
      .subscribe({
        next: (resolved) => this.#change({ decisions: { ...this.#state.decisions, resolved } }),
        error: (error: unknown) => this.#notice(error),
      });
    this.#followConflicts();
    this.demo.events$.pipe(auditTime(redrawEveryMs)).subscribe({
      next: (events) => this.#change({ events }),
      error: (error: unknown) => this.#notice(error),
    });
    interval(1000)
      .pipe(filter(() => this.#isCountingDown()))
      .subscribe(() => this.#change({ now: Date.now() }));
    this.#followOutage();
    this.#draw();
  }

  selectTab(tab: Tab): void {
    this.#change({ tab });
  }

  toggleOpen(id: string): void {
    this.#change({ open: toggled(this.#state.open, id) });
  }

  toggleChosen(id: string): void {
    this.#change({ chosen: toggled(this.#state.chosen, id) });
  }

  clearChosen(): void {
    this.#change({ chosen: new Set() });
  }

  showMore(id: string): void {
    const shown = new Map(this.#state.shown);
    shown.set(id, (shown.get(id) ?? rowsShown) + moreRows);
    this.#change({ shown });
  }

  showMoreFailures(): void {
    this.#change({ failuresShown: this.#state.failuresShown + failuresAtOnce });
  }

  startMove(): void {
    const move = {
      search: '',
      targetId: undefined,
      target: 'local',
      problem: undefined,
      size: 0,
      isQueuing: false,
    } as const;
    this.#change({ move });
  }

  changeMove(change: Partial<MoveState>): void {
    if (!this.#state.move) return;
    const move = { ...this.#state.move, ...change };
    this.#change({ move: { ...move, ...this.#sizeOf(move.targetId) } });
  }

  cancelMove(): void {
    this.#change({ move: undefined });
  }

  confirmMove(): void {
    const { move, chosen } = this.#state;
    if (move?.targetId === undefined) return;
    this.#change({ move: { ...move, isQueuing: true } });
    this.demo
      .move([...chosen], move.targetId, move.target)
      .then(() => this.#change({ move: undefined, chosen: new Set(), tab: 'queue' }))
      .catch((error: unknown) => this.changeMove({ isQueuing: false, problem: messageOf(error) }));
  }

  setOutage(on: boolean): void {
    this.demo.outage
      .set(on)
      .then(() => this.#outageIs(on))
      .catch((error: unknown) => {
        this.#notice(error);
        this.#readOutage();
      });
  }

  failOnPurpose(): void {
    this.#change({ isQueuingFailures: true });
    this.demo
      .failOnPurpose()
      .catch((error: unknown) => this.#notice(error))
      .finally(() => this.#change({ isQueuingFailures: false }));
  }

  meetFault(): void {
    this.#change({ isQueuingFailures: true });
    this.demo
      .meetFault()
      .then(() => this.#change({ tab: 'queue' }))
      .catch((error: unknown) => this.#notice(error))
      .finally(() => this.#change({ isQueuingFailures: false }));
  }

  syncNow(): void {
    this.demo.client.syncNow();
  }

  importSample(): void {
    this.#change({ tab: 'import' });
    this.demo.importSample().catch((error: unknown) => this.#notice(error));
  }

  importFiles(files: FileList | null): void {
    if (!files || files.length === 0) return;
    Promise.all([...files].map(async (file) => ({ name: file.name, text: await file.text() })))
      .then((sources) => this.demo.importFiles(sources))
      .catch((error: unknown) => this.#notice(error));
  }

  dismissNotice(): void {
    this.#change({ notice: undefined });
  }

  #sizeOf(targetId: string | undefined): { size: number; problem: string | undefined } {
    if (targetId === undefined) return { size: 0, problem: undefined };
    try {
      const parts = this.demo.planMove([...this.#state.chosen], targetId);
      return { size: parts.reduce((sum, { operations }) => sum + operations.length, 0), problem: undefined };
    } catch (error) {
      if (error instanceof MoveError) return { size: 0, problem: error.message };
      throw error;
    }
  }

  /** What is in quarantine, and what was decided about it. */
  #followConflicts(): void {
    const { client } = this.demo;
    client.quarantine$
      .pipe(
        switchMap(async (open) => {
          const resolved = [...(await client.listQuarantined({ resolved: true }))];
          return { open, resolved: resolved.sort((a, b) => (b.resolution?.at ?? 0) - (a.resolution?.at ?? 0)) };
        }),
      )
      .subscribe({
        next: (change) => this.#change({ conflicts: { ...this.#state.conflicts, ...change } }),
        error: (error: unknown) => this.#notice(error),
      });
  }

  /** Another window, or a command, may turn the switch too. */
  #followOutage(): void {
    this.#readOutage();
    merge(interval(readOutageEveryMs), fromEvent(document, 'visibilitychange'))
      .pipe(filter(() => document.visibilityState === 'visible'))
      .subscribe(() => this.#readOutage());
  }

  #readOutage(): void {
    const before = this.#outageReading++;
    this.demo.outage
      .isOn()
      .then((outage) => {
        // An answer that was overtaken, by the switch or by a later one, says nothing.
        if (this.#outageReading === before + 1) this.#outageIs(outage);
      })
      .catch(() => this.#change({ outage: 'unknown' }));
  }

  #outageIs(outage: boolean): void {
    const isOver = this.#state.outage === true && !outage;
    this.#outageReading++;
    if (outage !== this.#state.outage) this.#change({ outage });
    // A person who ends the outage wants to see it end, not to wait for the next try.
    if (isOver) this.syncNow();
  }

  #notice(error: unknown): void {
    this.#change({ notice: messageOf(error) });
  }

  #isCountingDown(): boolean {
    const { status, bulkOperations } = this.#state;
    const transfers = status ? [status.push, status.pull, status.results, ...Object.values(status.publishers)] : [];
    return [...transfers, ...bulkOperations].some(({ nextAttemptAt }) => nextAttemptAt !== undefined);
  }

  #change(change: Partial<ViewState>): void {
    this.#state = { ...this.#state, ...change };
    if (!this.#isDrawn) return;
    this.#isDrawn = false;
    requestAnimationFrame(() => {
      this.#isDrawn = true;
      this.#draw();
    });
  }

  #draw(): void {
    const focused = document.activeElement;
    const hadDialog = this.root.querySelector('dialog') !== null;
    render(page(this.#state, this), this.root);
    const dialog = this.root.querySelector('dialog');
    if (dialog && !dialog.open) {
      this.#opener = focused;
      dialog.showModal();
    } else if (!dialog && (hadDialog || focused?.isConnected === false)) {
      this.#focusAgain(hadDialog ? this.#opener : focused);
    }
  }

  /** Whoever works without a mouse stays where they were, or where it is said what has happened. */
  #focusAgain(before: Element | null): void {
    const element = before?.isConnected === true ? before : this.root.querySelector('.said');
    if (element instanceof HTMLElement) element.focus({ preventScroll: true });
  }
}

function areSame(before: readonly FailedOperation[], after: readonly FailedOperation[]): boolean {
  return (
    before.length === after.length && before.every(({ failureId }, place) => failureId === after[place]?.failureId)
  );
}

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const changed = new Set(ids);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
