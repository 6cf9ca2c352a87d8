import type { FailedOperation } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { count, wordsOfFailure } from '../words.js';
import type { Actions, ViewState } from './state.js';

/** The failures of the chosen kind; all of them when none is chosen, or none of that kind is left. */
export function ofCode({ failures, decisions: { code } }: ViewState): readonly FailedOperation[] {
  const chosen = failures.filter((failure) => failure.code === code);
  return chosen.length > 0 ? chosen : failures;
}

/** What can be done with all failures that are shown. */
export function forAll(shown: readonly FailedOperation[], state: ViewState, actions: Actions): TemplateResult {
  const { decide } = actions;
  const { rate, rateProblem } = state.decisions;
  const all = shown.length === 1 ? 'this one' : `all ${shown.length.toLocaleString('en')}`;
  return html`<form
    class="card for-all"
    novalidate
    aria-label="For all that are shown"
    @submit=${(event: Event) => {
      event.preventDefault();
      decide.retryAll(shown);
    }}
  >
    ${kinds(shown, state, actions)}
    <label class="rate">
      Changes a second, at most
      <input
        type="text"
        inputmode="decimal"
        placeholder="any"
        aria-invalid=${rateProblem === undefined ? 'false' : 'true'}
        aria-describedby=${rateProblem === undefined ? nothing : 'rate-problem'}
        .value=${rate}
        @input=${(event: Event) => decide.setRate((event.target as HTMLInputElement).value)}
      />
    </label>
    ${rateProblem === undefined ? nothing : html`<p class="problem" role="alert" id="rate-problem">${rateProblem}</p>`}
    <p class="buttons">
      <button class="primary">Try ${all} again</button>
      <button
        type="button"
        @click=${() => decide.discard(shown, shown.length === 1 ? 'this change' : count(shown.length, 'change', 'changes'))}
      >
        Discard ${all}
      </button>
    </p>
  </form>`;
}

function kinds(shown: readonly FailedOperation[], state: ViewState, actions: Actions): TemplateResult | typeof nothing {
  const counts = new Map<string, number>();
  for (const { code } of state.failures) counts.set(code, (counts.get(code) ?? 0) + 1);
  if (counts.size < 2) return nothing;
  const chosen = shown.length === state.failures.length ? '' : state.decisions.code;
  return html`<label class="kind">
    Show
    <select
      @change=${(event: Event) => {
        const { value } = event.target as HTMLSelectElement;
        actions.decide.show(value === '' ? undefined : value);
      }}
    >
      <option value="" ?selected=${chosen === ''}>Everything that failed (${state.failures.length})</option>
      ${[...counts].map(
        ([code, number]) =>
          html`<option value=${code} ?selected=${chosen === code}>${wordsOfFailure(code).what} (${number})</option>`,
      )}
    </select>
  </label>`;
}
