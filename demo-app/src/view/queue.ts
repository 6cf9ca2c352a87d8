import type { BulkOperationStatus, TransferStatus } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { count, wordsOfAction, wordsOfBulk, wordsOfTransfer } from '../words.js';
import { bulkControls } from './bulk-controls.js';
import type { Actions, ViewState } from './state.js';
import { badge, errorNow, transferCard, waiting } from './transfer.js';

export function syncPanel(state: ViewState): TemplateResult {
  const { status } = state;
  if (!status) return html`<p class="hint">Opening the queue …</p>`;
  return html`<dl class="transfers">
    ${transfer('push', 'Changes to the server', status.push, state.now)}
    ${transfer('pull', 'Changes from the server', status.pull, state.now)}
    ${transfer('results', 'Results to the server', status.results, state.now)}
  </dl>`;
}

function transfer(name: string, title: string, one: TransferStatus, now: number): TemplateResult {
  const amounts = count(one.transferred, 'brought over so far', 'brought over so far');
  const words = wordsOfTransfer(one);
  return transferCard({ name, title, state: one.state, words, awaited: one, amounts }, now);
}

export function queuePanel(state: ViewState, actions: Actions): TemplateResult {
  const newestFirst = [...state.bulkOperations].reverse();
  if (newestFirst.length === 0) return html`<p class="empty">Nothing has been queued on this device yet.</p>`;
  return html`<ol class="queue">
    ${repeat(
      newestFirst,
      (bulk) => bulk.id,
      (bulk) => bulkOperation(bulk, state, actions),
    )}
  </ol>`;
}

function bulkOperation(bulk: BulkOperationStatus, state: ViewState, actions: Actions): TemplateResult {
  const words = state.status ? wordsOfBulk(bulk, state.status.push) : { text: bulk.state, mood: 'busy' as const };
  const [first = '', ...later] = bulk.actions.map(wordsOfAction);
  const title = `#${String(bulk.sequence)} ${[first, ...later.map((name) => name.toLowerCase())].join(', then ')}`;
  return html`<li class="card" data-bulk=${bulk.id} data-state=${bulk.state}>
    <header>
      <h3>${title}</h3>
      <span class="detail">${bulk.target === 'local' ? 'on this device' : 'at the server'}</span>
    </header>
    ${badge(words)} ${waiting(bulk.attempt, bulk.nextAttemptAt, errorNow(bulk), state.now)}
    <progress max=${bulk.total} value=${bulk.cursor} aria-label="Progress"></progress>
    <p class="detail counts">
      <span class="cursor">${bulk.cursor.toLocaleString('en')} of ${bulk.total.toLocaleString('en')}</span>
      <span>· ${bulk.applied.toLocaleString('en')} changed</span>
      <span>· ${bulk.alreadyApplied.toLocaleString('en')} unchanged</span>
      <span class=${bulk.failed > 0 ? 'bad' : ''}>· ${bulk.failed.toLocaleString('en')} failed</span>
      ${bulk.resolved === 0 ? nothing : html`<span>· ${bulk.resolved.toLocaleString('en')} tried again or discarded</span>`}
      ${bulk.ratePerSecond === undefined ? nothing : html`<span>· at most ${bulk.ratePerSecond} a second</span>`}
    </p>
    ${bulkControls(bulk, title, state, actions)}
  </li>`;
}
