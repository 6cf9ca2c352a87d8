import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { Entry } from '../catalogue.js';
import { moveTargets, noTargets } from '../move-targets.js';
import { count, wordOfType } from '../words.js';
import type { Actions, MoveState, ViewState } from './state.js';

const targetsShown = 40;

export function moveDialog(state: ViewState, actions: Actions): TemplateResult | typeof nothing {
  const { move } = state;
  if (!move) return nothing;
  const chosen = [...state.chosen];
  const all = moveTargets(state.catalogue, chosen);
  const wanted = move.search.trim().toLowerCase();
  const found = all.filter(({ name }) => name.toLowerCase().includes(wanted));
  const nothingFound = all.length === 0 ? noTargets(state.catalogue, chosen) : 'No place is called so.';
  return html`<dialog
    aria-label="Move to another place"
    @cancel=${(event: Event) => {
      event.preventDefault();
      actions.cancelMove();
    }}
  >
    <h2>Move ${whatMoves(state)} to …</h2>
    <p class="hint">All that lies below moves along, and reports keep up with their contacts.</p>
    <input
      type="search"
      placeholder="Find a place"
      aria-label="Find a place"
      .value=${move.search}
      @input=${(event: InputEvent) => actions.changeMove({ search: (event.target as HTMLInputElement).value, targetId: undefined })}
    />
    ${
      found.length === 0
        ? html`<p class="targets empty" aria-live="polite">${nothingFound}</p>`
        : html`<ul class="targets">
            ${repeat(
              found.slice(0, targetsShown),
              ({ id }) => id,
              (place) => target(place, state, move, actions),
            )}
          </ul>`
    }
    ${
      found.length > targetsShown
        ? html`<p class="hint">${count(found.length - targetsShown, 'more place', 'more places')}: type a name.</p>`
        : nothing
    }
    <label class="where">
      Make the change
      <select
        .value=${move.target}
        @change=${(event: Event) =>
          actions.changeMove({ target: (event.target as HTMLSelectElement).value === 'server' ? 'server' : 'local' })}
      >
        <option value="local">on this device, and send it</option>
        <option value="server">at the server</option>
      </select>
    </label>
    ${move.problem === undefined ? nothing : html`<p class="problem" role="alert">${move.problem}</p>`}
    <footer>
      <button @click=${() => actions.cancelMove()}>Cancel</button>
      <button class="primary" ?disabled=${move.size === 0 || move.isQueuing} @click=${() => actions.confirmMove()}>
        ${move.size === 0 ? 'Move' : `Move (${count(move.size, 'change', 'changes')})`}
      </button>
    </footer>
  </dialog>`;
}

function target(place: Entry, state: ViewState, move: MoveState, actions: Actions): TemplateResult {
  const above = place.parentId === undefined ? undefined : state.catalogue.get(place.parentId);
  return html`<li>
    <label>
      <input
        type="radio"
        name="target"
        .checked=${move.targetId === place.id}
        @change=${() => actions.changeMove({ targetId: place.id })}
      />
      <span class="name">${place.name}</span>
      <span class="detail">${wordOfType(place.type)}${above ? ` in ${above.name}` : ''}</span>
    </label>
  </li>`;
}

function whatMoves({ chosen, catalogue }: ViewState): string {
  const [only = ''] = chosen;
  const name = chosen.size === 1 ? catalogue.get(only)?.name : undefined;
  return name === undefined ? count(chosen.size, 'record', 'records') : `“${name}”`;
}
