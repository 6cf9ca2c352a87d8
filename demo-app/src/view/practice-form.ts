import { html, nothing, type TemplateResult } from 'lit';
import type { Actions, ViewState } from './state.js';

/** Queues a request under a key, once and again, so that duplicates and conflicts can be looked at (O4, O5). */
export function practiceForm(state: ViewState, { conflicts }: Actions): TemplateResult {
  const { key, phone, said, isQueuing } = state.conflicts;
  return html`<form
    class="card practice"
    novalidate
    aria-label="Practise with keys"
    @submit=${(event: Event) => {
      event.preventDefault();
      conflicts.queue();
    }}
  >
    <h3>The same request twice</h3>
    <p class="hint">
      This request changes the phone of one person. Queue it twice: the second time it is a duplicate. Then queue
      another phone under the same key: that is refused.
    </p>
    <div class="pair">
      ${text('practice-key', 'Key', key, (value) => conflicts.setKey(value))}
      ${text('practice-phone', 'Phone', phone, (value) => conflicts.setPhone(value))}
    </div>
    <p class="buttons">
      <button class="primary" ?disabled=${isQueuing}>Queue this request</button>
      <button type="button" ?disabled=${isQueuing} @click=${() => conflicts.queueOther()}>
        Same key, another phone
      </button>
      <button type="button" ?disabled=${isQueuing} @click=${() => conflicts.createAgain()}>
        Create a record that exists
      </button>
    </p>
    <p class="answer" aria-live="polite">
      ${said === undefined ? nothing : html`<span class="badge ${said.mood}">${said.text}</span>`}
    </p>
  </form>`;
}

function text(id: string, label: string, value: string, write: (value: string) => void): TemplateResult {
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <input
      type="text"
      id=${id}
      spellcheck="false"
      autocapitalize="off"
      autocomplete="off"
      .value=${value}
      @input=${(event: Event) => write((event.target as HTMLInputElement).value)}
    />
  </div>`;
}
