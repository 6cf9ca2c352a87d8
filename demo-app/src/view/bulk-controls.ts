import type { BulkOperationState, BulkOperationStatus } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { count, notDone, wordsOfAction } from '../words.js';
import { nameOf } from './record-name.js';
import type { Actions, ViewState } from './state.js';

const mostShown = 50;
const ended: ReadonlySet<BulkOperationState> = new Set(['done', 'done-with-failures', 'failed', 'cancelled']);

/** What a person can do with one bulk operation, as its state allows, and what it has left undone. */
export function bulkControls(
  bulk: BulkOperationStatus,
  title: string,
  state: ViewState,
  actions: Actions,
): TemplateResult {
  const { decide } = actions;
  const button = (text: string, act: () => void): TemplateResult =>
    html`<button aria-label=${`${text}: ${title}`} @click=${act}>${text}</button>`;
  const buttons = [
    ...(ended.has(bulk.state)
      ? []
      : [
          bulk.state === 'paused'
            ? button('Resume', () => decide.resume(bulk.id))
            : button('Pause', () => decide.pause(bulk.id)),
          button('Cancel', () => decide.cancel(bulk.id)),
        ]),
    ...(hasRest(bulk) ? [button('Try the rest again', () => decide.retryRest(bulk.id))] : []),
    ...(hasRest(bulk) && bulk.state === 'failed' ? [button('Give up the rest', () => decide.cancel(bulk.id))] : []),
  ];
  return html`${rest(bulk, state, actions)} ${buttons.length === 0 ? nothing : html`<p class="buttons">${buttons}</p>`}`;
}

function hasRest(bulk: BulkOperationStatus): boolean {
  if (bulk.continuedBy !== undefined) return false;
  // A plan that a fault has stopped has no operations yet: all of it is the rest.
  const isUnplanned = bulk.plan !== undefined && bulk.total === 0;
  return (bulk.state === 'failed' || bulk.state === 'cancelled') && (notDone(bulk) > 0 || isUnplanned);
}

function rest(bulk: BulkOperationStatus, state: ViewState, actions: Actions): TemplateResult | typeof nothing {
  if (bulk.state !== 'failed' && bulk.state !== 'cancelled') return nothing;
  const next = state.bulkOperations.find(({ id }) => id === bulk.continuedBy);
  return html`${undone(bulk, state, actions)}
  ${next === undefined ? nothing : html`<p class="detail">The rest goes on as #${next.sequence}.</p>`}
  ${
    bulk.bug === undefined
      ? nothing
      : html`<details class="detail">
          <summary>For those who look after this app</summary>
          <pre>${bulk.bug.stack}</pre>
        </details>`
  }`;
}

/** Counted at once, and listed when the person wants to see it. */
function undone(bulk: BulkOperationStatus, state: ViewState, actions: Actions): TemplateResult | typeof nothing {
  const number = notDone(bulk);
  if (number === 0) return nothing;
  const operations = state.decisions.undone.get(bulk.id);
  return html`<details
    class="not-done"
    @toggle=${(event: Event) => {
      if ((event.target as HTMLDetailsElement).open) actions.decide.lookAtRest(bulk.id);
    }}
  >
    <summary>${count(number, 'change was', 'changes were')} not done.</summary>
    ${
      operations === undefined
        ? html`<p class="hint">Looking …</p>`
        : html`<ul class="detail">
            ${operations
              .slice(0, mostShown)
              .map((one) => html`<li>${wordsOfAction(one.action)}: ${nameOf(one, state)}</li>`)}
            ${operations.length > mostShown ? html`<li>… and ${count(operations.length - mostShown, 'more', 'more')}</li>` : nothing}
          </ul>`
    }
  </details>`;
}
