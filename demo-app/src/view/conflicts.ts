import type { QuarantineEntry } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { recordOf, versionsOf, type VersionRow } from '../versions.js';
import { wordsOfConflict, wordsOfDecision } from '../words-of-conflicts.js';
import { count } from '../words.js';
import { practiceForm } from './practice-form.js';
import { nameOf } from './record-name.js';
import type { Actions, ViewState } from './state.js';
import { badge } from './transfer.js';

const mostShown = 50;
const mostRows = 40;

export function conflictsPanel(state: ViewState, actions: Actions): TemplateResult {
  const { open } = state.conflicts;
  return html`${practiceForm(state, actions)}
  ${
    open.length === 0
      ? html`<p class="empty">No conflict waits for a decision.</p>`
      : html`<ul class="conflicts">
            ${repeat(
              open.slice(0, mostShown),
              ({ quarantineId }) => quarantineId,
              (entry) => conflict(entry, state, actions),
            )}
          </ul>
          ${open.length > mostShown ? html`<p class="hint">… and ${count(open.length - mostShown, 'more', 'more')}. They come when these are decided.</p>` : nothing}`
  }
  ${resolvedConflicts(state)}`;
}

function conflict(entry: QuarantineEntry, state: ViewState, actions: Actions): TemplateResult {
  const title = titleOf(entry, state);
  const { what, ifSecond } = wordsOfConflict(entry.kind);
  const button = (text: string, decision: 'keep-first' | 'take-second' | 'discard'): TemplateResult =>
    html`<button
      aria-label=${`${text}: ${title}`}
      ?disabled=${state.conflicts.isQueuing}
      @click=${() => actions.conflicts.resolve(entry.quarantineId, decision)}
    >
      ${text}
    </button>`;
  return html`<li class="card" data-conflict=${entry.kind}>
    <h3>${title}</h3>
    <span class="badge bad">${what}.</span>
    ${versions(entry, title)}
    <p class="detail">
      <b>Keep the first</b> and <b>Discard</b>: all stays as it is now. <b>Take the second</b>: ${ifSecond}
    </p>
    <p class="buttons">
      ${button('Keep the first', 'keep-first')} ${button('Take the second', 'take-second')}
      ${button('Discard', 'discard')}
    </p>
  </li>`;
}

function titleOf(entry: QuarantineEntry, state: ViewState): string {
  const id = recordOf(entry);
  return id === undefined ? 'A whole request' : nameOf({ id }, state);
}

function versions(entry: QuarantineEntry, title: string): TemplateResult {
  const { different, same, hasFirst } = versionsOf(entry);
  return html`${hasFirst ? nothing : html`<p class="detail">The first one is no longer stored on this device.</p>`}
    ${table(different, `What is different: ${title}`)}
    <p class="detail">Key: <code>${entry.key}</code></p>
    ${
      same.length === 0
        ? nothing
        : html`<details class="detail">
            <summary>The same in both: ${count(same.length, 'field', 'fields')}</summary>
            ${table(same, `The same in both: ${title}`)}
          </details>`
    }`;
}

function table(rows: readonly VersionRow[], label: string): TemplateResult {
  return html`<table class="versions" aria-label=${label}>
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">First <span>counts now</span></th>
          <th scope="col">Second <span>was refused</span></th>
        </tr>
      </thead>
      <tbody>
        ${rows.slice(0, mostRows).map(
          ({ field, first, second }) =>
            html`<tr>
              <th scope="row">${breakable(field)}</th>
              <td>${first ?? html`<i>none</i>`}</td>
              <td>${second ?? html`<i>none</i>`}</td>
            </tr>`,
        )}
      </tbody>
    </table>
    ${rows.length > mostRows ? html`<p class="detail">… and ${count(rows.length - mostRows, 'more field', 'more fields')}.</p>` : nothing}`;
}

/** A long path is broken where it has a dot. */
function breakable(path: string): TemplateResult[] {
  return path.split(/(?<=\.)/).map((part) => html`${part}<wbr />`);
}

function resolvedConflicts(state: ViewState): TemplateResult | typeof nothing {
  const { resolved } = state.conflicts;
  if (resolved.length === 0) return nothing;
  return html`<details class="resolved">
    <summary>Decided <span class="tally">${resolved.length.toLocaleString('en')}</span></summary>
    <ul class="conflicts">
      ${repeat(
        resolved.slice(0, mostShown),
        ({ quarantineId }) => quarantineId,
        (entry) =>
          html`<li class="card" data-decision=${entry.resolution?.decision ?? ''}>
            <h3>${titleOf(entry, state)}</h3>
            ${badge(wordsOfDecision(entry, state.bulkOperations))}
            <p class="detail">${wordsOfConflict(entry.kind).what}.</p>
            <details class="detail">
              <summary>Both versions</summary>
              ${versions(entry, titleOf(entry, state))}
            </details>
          </li>`,
      )}
    </ul>
  </details>`;
}
