import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { isPlace, type Entry } from '../catalogue.js';
import { count, pluralOfType, wordOfType } from '../words.js';
import type { Actions, ViewState } from './state.js';

/** Rows of a list that are drawn at first, and with each "Show more". */
export const rowsShown = 50;

export function tree(state: ViewState, actions: Actions): TemplateResult {
  const roots = state.catalogue.childrenOf(undefined);
  if (roots.length === 0) {
    return html`<div class="empty">
      <p>No places on this device yet.</p>
      <p class="buttons">
        <button class="primary" @click=${() => actions.importSample()}>Import the sample</button>
        <button @click=${() => actions.selectTab('import')}>Import files …</button>
      </p>
    </div>`;
  }
  return html`<ul class="tree" aria-label="Places and persons">
    ${branch(undefined, roots, state, actions)}
  </ul>`;
}

function branch(
  parentId: string | undefined,
  entries: readonly Entry[],
  state: ViewState,
  actions: Actions,
): TemplateResult {
  const id = parentId ?? '';
  const shown = state.shown.get(id) ?? rowsShown;
  const left = entries.length - shown;
  return html`${repeat(
    entries.slice(0, shown),
    (entry) => entry.id,
    (entry) => row(entry, state, actions),
  )}
  ${
    left > 0
      ? html`<li class="more">
          <button @click=${() => actions.showMore(id)}>Show more (${count(left, 'more', 'more')})</button>
        </li>`
      : nothing
  }`;
}

function row(entry: Entry, state: ViewState, actions: Actions): TemplateResult {
  const children = state.catalogue.countOf(entry.id);
  const isOpen = state.open.has(entry.id);
  const label = `${wordOfType(entry.type)} ${entry.name}`;
  return html`<li data-id=${entry.id}>
    <div class="row ${state.chosen.has(entry.id) ? 'chosen' : ''}">
      ${
        children > 0
          ? html`<button
              class="twist"
              aria-expanded=${isOpen ? 'true' : 'false'}
              aria-label=${`${isOpen ? 'Close' : 'Open'} ${label}`}
              @click=${() => actions.toggleOpen(entry.id)}
            >
              <span aria-hidden="true">▸</span>
            </button>`
          : html`<span class="twist"></span>`
      }
      <label>
        <input
          type="checkbox"
          aria-label=${`Choose ${label}`}
          .checked=${state.chosen.has(entry.id)}
          @change=${() => actions.toggleChosen(entry.id)}
        />
        <span class="name">${entry.name}</span>
      </label>
      <span class="detail">${detail(entry, children, state)}</span>
    </div>
    ${
      isOpen && children > 0
        ? html`<ul>
            ${branch(entry.id, state.catalogue.childrenOf(entry.id), state, actions)}
          </ul>`
        : nothing
    }
  </li>`;
}

function detail(entry: Entry, children: number, state: ViewState): string {
  if (!isPlace(entry)) return entry.parentId === undefined ? 'Person without a place' : '';
  if (children === 0) return wordOfType(entry.type);
  const [first] = state.catalogue.childrenOf(entry.id);
  const kind = first?.type ?? '';
  return `${wordOfType(entry.type)} · ${count(children, wordOfType(kind).toLowerCase(), pluralOfType(kind))}`;
}
