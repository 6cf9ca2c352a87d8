import { html, nothing, type TemplateResult } from 'lit';
import type { Actions, ViewState } from './state.js';

export function questionDialog(state: ViewState, actions: Actions): TemplateResult | typeof nothing {
  const { question } = state.decisions;
  if (!question) return nothing;
  return html`<dialog
    aria-labelledby="question-title"
    aria-describedby="question-text"
    @cancel=${(event: Event) => {
      event.preventDefault();
      actions.decide.closeQuestion();
    }}
  >
    <h2 id="question-title">${question.title}</h2>
    <p id="question-text">${question.text}</p>
    <footer>
      <button @click=${() => actions.decide.closeQuestion()}>Keep</button>
      <button class="primary" @click=${() => actions.decide.answer()}>${question.answer}</button>
    </footer>
  </dialog>`;
}
