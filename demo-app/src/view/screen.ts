import { html, nothing, render, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import { combineLatest, fromEvent, interval, merge } from 'rxjs';
import { auditTime, filter } from 'rxjs/operators';
import type { Demo } from '../demo.js';
import { MoveError } from '../plan-move.js';
import { count, wordsOfClient } from '../words.js';
import { failuresPanel } from './failures.js';
import { importPanel } from './import.js';
import { moveDialog } from './move-dialog.js';
import { queuePanel, syncPanel } from './queue.js';
import type { Actions, MoveState, Tab, ViewState } from './state.js';
import { rowsShown, tree } from './tree.js';

const redrawEveryMs = 150;
const readOutageEveryMs = 3000;
const moreRows = 100;
const failuresAtOnce = 50;

/** Draws the whole page from one state; lit changes only what differs. Data becomes text, never markup. */
export class Screen implements Actions {
  #state: ViewState;
  #isDrawn = true;
  #outageReading = 0;

  constructor(
    private readonly demo: Demo,
    private readonly root: HTMLElement,
  ) {
    this.#state = {
      catalogue: demo.catalogue,
      status: undefined,
      bulkOperations: [],
      failures: [],
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
      notice: undefined,
    };
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
    const transfers = status ? [status.push, status.pull, status.results] : [];
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
    render(page(this.#state, this), this.root);
    const dialog = this.root.querySelector('dialog');
    if (dialog && !dialog.open) dialog.showModal();
  }
}

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const changed = new Set(ids);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function page(state: ViewState, actions: Actions): TemplateResult {
  return html`<div class="head">
      ${header(state, actions)}
      ${
        state.notice === undefined
          ? nothing
          : html`<p class="notice" role="alert">
              ${state.notice} <button @click=${() => actions.dismissNotice()}>Close</button>
            </p>`
      }
      <nav aria-label="Parts of the page" data-tab=${state.tab}>
        ${tabButton('places', 'Places', undefined, state, actions)}
        ${tabButton('queue', 'Queue', state.status?.pending, state, actions)}
        ${tabButton('failures', 'Failed', state.failures.length, state, actions)}
        ${tabButton('import', 'Import', undefined, state, actions)}
      </nav>
    </div>
    <main data-tab=${state.tab}>
      <section class="places" aria-label="Places and persons">
        <h2>Places and persons</h2>
        ${tree(state, actions)}
      </section>
      <div class="side">
        <section class="queue-section" aria-label="Queue">
          <h2>Server</h2>
          ${syncPanel(state)}
          <h2>Queue</h2>
          ${queuePanel(state)}
        </section>
        <section class="failures-section" aria-label="Failed">
          <h2>
            Failed ${state.failures.length > 0 ? html`<span class="tally">${state.failures.length}</span>` : nothing}
          </h2>
          ${failuresPanel(state, actions)}
        </section>
        <section class="import-section" aria-label="Import">
          <h2>Import</h2>
          ${importPanel(state, actions)}
        </section>
      </div>
    </main>
    ${chosenBar(state, actions)} ${moveDialog(state, actions)}`;
}

function header(state: ViewState, actions: Actions): TemplateResult {
  const words = state.status ? wordsOfClient(state.status, state.outage === true) : { text: 'Opening …', mood: 'busy' };
  return html`<header class="top">
    <h1>Afield <span>demo</span></h1>
    <p class="overall ${words.mood}" role="status">${words.text}</p>
    <div class="controls">
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          .checked=${live(state.outage === true)}
          ?disabled=${state.outage === 'unknown'}
          @change=${(event: Event) => actions.setOutage((event.target as HTMLInputElement).checked)}
        />
        <span class="track" aria-hidden="true"></span>
        Server outage
      </label>
      <button @click=${() => actions.syncNow()}>Sync now</button>
    </div>
  </header>`;
}

function tabButton(
  tab: Tab,
  title: string,
  tally: number | undefined,
  state: ViewState,
  actions: Actions,
): TemplateResult {
  return html`<button aria-current=${state.tab === tab ? 'page' : 'false'} @click=${() => actions.selectTab(tab)}>
    ${title}
    ${tally === undefined || tally === 0 ? nothing : html`<span class="tally">${tally.toLocaleString('en')}</span>`}
  </button>`;
}

function chosenBar(state: ViewState, actions: Actions): TemplateResult | typeof nothing {
  if (state.chosen.size === 0) return nothing;
  return html`<div class="chosen-bar" role="region" aria-label="Chosen">
    <span>${count(state.chosen.size, 'record', 'records')} chosen</span>
    <button @click=${() => actions.clearChosen()}>Clear</button>
    <button class="primary" @click=${() => actions.startMove()}>Move …</button>
  </div>`;
}
