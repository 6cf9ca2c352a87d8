import { html, nothing, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import { count, wordsOfClient } from '../words.js';
import { conflictsPanel } from './conflicts.js';
import { editDialog } from './edit-dialog.js';
import { eventsPanel } from './events.js';
import { failuresPanel } from './failures.js';
import { importPanel } from './import.js';
import { moveDialog } from './move-dialog.js';
import { questionDialog } from './question-dialog.js';
import { queuePanel, syncPanel } from './queue.js';
import type { Actions, Tab, ViewState } from './state.js';
import { tree } from './tree.js';

/** The whole page. Data becomes text, never markup. */
export function page(state: ViewState, actions: Actions): TemplateResult {
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
        ${tabButton('conflicts', 'Conflicts', state.conflicts.open.length, state, actions)}
        ${tabButton('events', 'Events', state.status?.unpublished, state, actions)}
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
          ${queuePanel(state, actions)}
        </section>
        <section class="failures-section" aria-label="Failed">
          <h2>
            Failed ${state.failures.length > 0 ? html`<span class="tally">${state.failures.length}</span>` : nothing}
          </h2>
          ${failuresPanel(state, actions)}
        </section>
        <section class="conflicts-section" aria-label="Conflicts">
          <h2>Conflicts</h2>
          ${conflictsPanel(state, actions)}
        </section>
        <section class="events-section" aria-label="Events">
          <h2>Events</h2>
          ${eventsPanel(state)}
        </section>
        <section class="import-section" aria-label="Import">
          <h2>Import</h2>
          ${importPanel(state, actions)}
        </section>
      </div>
    </main>
    ${chosenBar(state, actions)} ${moveDialog(state, actions)} ${editDialog(state, actions)}
    ${questionDialog(state, actions)}`;
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
