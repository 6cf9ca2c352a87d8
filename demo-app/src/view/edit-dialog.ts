import { html, nothing, type TemplateResult } from 'lit';
import type { Field } from '../operation-fields.js';
import { wordsOfAction } from '../words.js';
import type { Actions, ViewState } from './state.js';

const mostLines = 8;

export function editDialog(state: ViewState, actions: Actions): TemplateResult | typeof nothing {
  const { edit } = state.decisions;
  if (!edit) return nothing;
  const { decide } = actions;
  const wrong = edit.problems.get('');
  return html`<dialog
    aria-labelledby="edit-title"
    @cancel=${(event: Event) => {
      event.preventDefault();
      decide.closeEdit();
    }}
  >
    <form
      novalidate
      @submit=${(event: Event) => {
        event.preventDefault();
        decide.saveEdit();
      }}
    >
      <h2 id="edit-title">Edit “${wordsOfAction(edit.failure.action ?? '')}” and try again</h2>
      <p class="hint">Each field is a text or JSON. An empty field is left out. What was asked before is kept.</p>
      <div class="fields">
        ${edit.fields.map((one) => field(one, edit.problems.get(one.name), (text) => decide.changeField(one.name, text)))}
      </div>
      ${wrong === undefined ? nothing : html`<p class="problem" role="alert">${wrong}</p>`}
      <footer>
        <button type="button" @click=${() => decide.closeEdit()}>Cancel</button>
        <button class="primary">Try again</button>
      </footer>
    </form>
  </dialog>`;
}

function field({ name, text }: Field, problem: string | undefined, write: (text: string) => void): TemplateResult {
  const lines = Math.min(mostLines, text.split('\n').length);
  return html`<div class="field">
    <label for=${`edit-${name}`}>${name === 'id' ? 'Record' : name}</label>
    <textarea
      id=${`edit-${name}`}
      rows=${lines}
      spellcheck="false"
      autocapitalize="off"
      autocomplete="off"
      aria-invalid=${problem === undefined ? 'false' : 'true'}
      aria-describedby=${problem === undefined ? nothing : `edit-problem-${name}`}
      .value=${text}
      @input=${(event: Event) => write((event.target as HTMLTextAreaElement).value)}
    ></textarea>
    ${problem === undefined ? nothing : html`<p class="problem" role="alert" id=${`edit-problem-${name}`}>${problem}</p>`}
  </div>`;
}
