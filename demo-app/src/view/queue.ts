import type { BulkOperationStatus, ErrorSummary, TransferStatus } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { count, countdown, wordsOfAction, wordsOfBulk, wordsOfError, wordsOfTransfer, type Words } from '../words.js';
import { bulkControls } from './bulk-controls.js';
import type { Actions, ViewState } from './state.js';

export function syncPanel(state: ViewState): TemplateResult {
  const { status } = state;
  if (!status) return html`<p class="hint">Opening the queue …</p>`;
  return html`<dl class="transfers">
    ${transfer('push', 'Changes to the server', status.push, state.now)}
    ${transfer('pull', 'Changes from the server', status.pull, state.now)}
    ${transfer('results', 'Results to the server', status.results, state.now)}
  </dl>`;
}

function transfer(name: string, title: string, transfer: TransferStatus, now: number): TemplateResult {
  const words = wordsOfTransfer(transfer);
  return html`<div class="card" data-transfer=${name} data-state=${transfer.state}>
    <dt>${title}</dt>
    <dd>
      ${badge(words)} ${waiting(transfer.attempt, transfer.nextAttemptAt, errorNow(transfer), now)}
      <p class="detail">${count(transfer.transferred, 'brought over so far', 'brought over so far')}</p>
    </dd>
  </div>`;
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

/** The last error counts only while it is in the way: afterwards it would say the opposite of what is true. */
function errorNow({
  state,
  lastError,
}: {
  state: string;
  lastError: ErrorSummary | undefined;
}): ErrorSummary | undefined {
  return state.startsWith('waiting') || state === 'failed' ? lastError : undefined;
}

function badge(words: Words): TemplateResult {
  return html`<span class="badge ${words.mood}">${words.text}</span>`;
}

function waiting(
  attempt: number,
  nextAttemptAt: number | undefined,
  lastError: ErrorSummary | undefined,
  now: number,
): TemplateResult | typeof nothing {
  if (nextAttemptAt === undefined && lastError === undefined) return nothing;
  return html`<p class="waiting">
    ${lastError === undefined ? nothing : html`<span class="error">${wordsOfError(lastError)}.</span>`}
    ${attempt > 0 ? html`<span class="attempt">Tried ${count(attempt, 'time', 'times')}.</span>` : nothing}
    ${
      nextAttemptAt === undefined
        ? nothing
        : html`<span class="next">Next try <b>${countdown(nextAttemptAt, now)}</b></span>`
    }
  </p>`;
}
