import type { FailedOperation } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { count, wordsOfAction, wordsOfFailure, wordsOfResolution } from '../words.js';
import { nameOf } from './record-name.js';
import type { ViewState } from './state.js';

const mostShown = 50;

/** Failures that a person has retried or discarded, the newest first, with what became of them. */
export function resolvedList(state: ViewState): TemplateResult | typeof nothing {
  const { resolved } = state.decisions;
  if (resolved.length === 0) return nothing;
  const all = [...resolved, ...state.failures];
  const newestFirst = [...resolved].sort((a, b) => (b.resolution?.at ?? 0) - (a.resolution?.at ?? 0));
  const left = newestFirst.length - mostShown;
  return html`<details class="resolved">
    <summary>Tried again or discarded <span class="tally">${resolved.length.toLocaleString('en')}</span></summary>
    <ul class="failures">
      ${repeat(
        newestFirst.slice(0, mostShown),
        ({ failureId }) => failureId,
        (failure) => row(failure, state, all),
      )}
    </ul>
    ${left > 0 ? html`<p class="hint">… and ${count(left, 'more', 'more')}, older ones.</p>` : nothing}
  </details>`;
}

function row(failure: FailedOperation, state: ViewState, all: readonly FailedOperation[]): TemplateResult {
  const words = wordsOfResolution(failure, state.bulkOperations, all);
  return html`<li class="card" data-resolution=${failure.resolution?.how ?? ''}>
    <header>
      <h3>${nameOf(failure, state)}</h3>
      <span class="detail">${failure.action === undefined ? 'Edit' : wordsOfAction(failure.action)}</span>
    </header>
    <span class="badge ${words.mood}">${words.text}.</span>
    <p class="detail">${wordsOfFailure(failure.code).what}.</p>
    ${
      failure.operation === undefined
        ? nothing
        : html`<details class="detail">
            <summary>What was asked for</summary>
            <pre>${JSON.stringify(failure.operation, null, 2)}</pre>
          </details>`
    }
  </li>`;
}
