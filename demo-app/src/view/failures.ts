import type { FailedOperation } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { count, wordsOfAction, wordsOfFailure } from '../words.js';
import type { Actions, ViewState } from './state.js';

export function failuresPanel(state: ViewState, actions: Actions): TemplateResult {
  const left = state.failures.length - state.failuresShown;
  return html`${
      state.failures.length === 0
        ? html`<p class="empty">Nothing has failed.</p>`
        : html`<ul class="failures">
            ${state.failures.slice(0, state.failuresShown).map((failure) => row(failure, state))}
          </ul>`
    }
    ${
      left > 0
        ? html`<button @click=${() => actions.showMoreFailures()}>Show more (${count(left, 'more', 'more')})</button>`
        : nothing
    }
    <p class="hint">To see how failures look, queue some on purpose. One of them comes back from the server.</p>
    <p class="buttons">
      <button ?disabled=${state.isQueuingFailures} @click=${() => actions.failOnPurpose()}>
        Queue five changes that must fail
      </button>
    </p>`;
}

function row(failure: FailedOperation, state: ViewState): TemplateResult {
  const name = failure.id === undefined ? 'No record named' : (state.catalogue.get(failure.id)?.name ?? failure.id);
  const { what, next } = wordsOfFailure(failure.code);
  return html`<li class="card" data-code=${failure.code}>
    <header>
      <h3>${name}</h3>
      <span class="detail">${failure.action === undefined ? 'Edit' : wordsOfAction(failure.action)}</span>
    </header>
    <span class="badge bad">${what}.</span>
    ${failure.code === 'forbidden' ? html`<p class="reason">It says: “${failure.reason}”.</p>` : nothing}
    <p class="next-step">${next}</p>
    ${failure.mayHaveBeenApplied ? html`<p class="detail">It may have been applied before.</p>` : nothing}
    <details class="detail">
      <summary>Details</summary>
      <code>${failure.code}</code>${failure.id === undefined ? nothing : html` · <code>${failure.id}</code>`}
      <br />${failure.reason}
    </details>
  </li>`;
}
