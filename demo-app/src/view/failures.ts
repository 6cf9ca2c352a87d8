import type { FailedOperation } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { count, wordsOfAction, wordsOfFailure } from '../words.js';
import type { Actions, ViewState } from './state.js';

export function failuresPanel(state: ViewState, actions: Actions): TemplateResult {
  if (state.failures.length === 0) return html`<p class="empty">Nothing has failed.</p>`;
  const left = state.failures.length - state.failuresShown;
  return html`<ul class="failures">
      ${state.failures.slice(0, state.failuresShown).map((failure) => row(failure, state))}
    </ul>
    ${
      left > 0
        ? html`<button @click=${() => actions.showMoreFailures()}>Show more (${count(left, 'more', 'more')})</button>`
        : nothing
    }`;
}

function row(failure: FailedOperation, state: ViewState): TemplateResult {
  const name = failure.id === undefined ? 'No record named' : (state.catalogue.get(failure.id)?.name ?? failure.id);
  return html`<li class="card" data-code=${failure.code}>
    <header>
      <h3>${name}</h3>
      <span class="detail">${failure.action === undefined ? 'Edit' : wordsOfAction(failure.action)}</span>
    </header>
    <span class="badge bad">${wordsOfFailure(failure.code)}</span>
    <p class="reason">${failure.reason}</p>
    ${failure.mayHaveBeenApplied ? html`<p class="detail">It may have been applied before.</p>` : nothing}
    <p class="detail">
      <code>${failure.code}</code>${failure.id === undefined ? nothing : html` · <code>${failure.id}</code>`}
    </p>
  </li>`;
}
