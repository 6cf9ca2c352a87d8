import type { FailedOperation } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { count, wordsOfAction, wordsOfFailure } from '../words.js';
import { nameOf } from './record-name.js';
import { forAll, ofCode } from './for-all.js';
import { resolvedList } from './resolved.js';
import type { Actions, ViewState } from './state.js';

export function failuresPanel(state: ViewState, actions: Actions): TemplateResult {
  const shown = ofCode(state);
  const left = shown.length - state.failuresShown;
  return html`<p class="said" aria-live="polite" tabindex="-1">${state.decisions.said}</p>
    ${
      state.failures.length === 0
        ? html`<p class="empty">Nothing has failed.</p>`
        : html`${forAll(shown, state, actions)}
            <ul class="failures">
              ${repeat(
                shown.slice(0, state.failuresShown),
                ({ failureId }) => failureId,
                (failure) => row(failure, state, actions),
              )}
            </ul>`
    }
    ${
      left > 0
        ? html`<button @click=${() => actions.showMoreFailures()}>Show more (${count(left, 'more', 'more')})</button>`
        : nothing
    }
    ${resolvedList(state)}
    <p class="hint">To see how failures look, queue some on purpose. One of them comes back from the server.</p>
    <p class="buttons">
      <button ?disabled=${state.isQueuingFailures} @click=${() => actions.failOnPurpose()}>
        Queue five changes that must fail
      </button>
      <button ?disabled=${state.isQueuingFailures} @click=${() => actions.meetFault()}>
        Queue changes that meet a fault of this app
      </button>
    </p>`;
}

function row(failure: FailedOperation, state: ViewState, actions: Actions): TemplateResult {
  const name = nameOf(failure, state);
  const { what, next } = wordsOfFailure(failure.code);
  const action = failure.action === undefined ? 'Edit' : wordsOfAction(failure.action);
  const button = (text: string, act: () => void): TemplateResult =>
    html`<button aria-label=${`${text}: ${action}, ${name}`} @click=${act}>${text}</button>`;
  return html`<li class="card" data-code=${failure.code}>
    <header>
      <h3>${name}</h3>
      <span class="detail">${action}</span>
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
    <p class="buttons">
      ${button('Try again', () => actions.decide.retry(failure))}
      ${
        // An edit of the app was no operation: the record itself is what to edit.
        failure.action === undefined ? nothing : button('Edit and try again', () => actions.decide.startEdit(failure))
      }
      ${button('Discard', () => actions.decide.discard([failure], `“${action}” for “${name}”`))}
    </p>
  </li>`;
}
