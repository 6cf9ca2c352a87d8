import { html, nothing, type TemplateResult } from 'lit';
import { findingKinds, type Finding } from '../csv/finding.js';
import type { ImportSummary } from '../import-documents.js';
import { count } from '../words.js';
import type { Actions, ViewState } from './state.js';

export function importPanel(state: ViewState, actions: Actions): TemplateResult {
  const { importState } = state;
  const isRunning = importState.state === 'running';
  return html`<p class="hint">
      Files in the style of cht-conf: <code>place.*.csv</code>, <code>person.*.csv</code>, <code>report.*.csv</code>.
      Choose all of them together, so that links between them are found.
    </p>
    <p class="buttons">
      <button class="primary" ?disabled=${isRunning} @click=${() => actions.importSample()}>Import the sample</button>
      <label class="button">
        Import files …
        <input
          type="file"
          multiple
          accept=".csv,text/csv"
          aria-label="Import files"
          ?disabled=${isRunning}
          @change=${(event: Event) => {
            const input = event.target as HTMLInputElement;
            actions.importFiles(input.files);
          }}
        />
      </label>
    </p>
    ${
      importState.state === 'running'
        ? html`<progress max=${Math.max(1, importState.total)} value=${importState.done}></progress>
            <p class="detail">
              ${count(importState.done, 'record', 'records')} of ${importState.total.toLocaleString('en')}
            </p>`
        : nothing
    }
    ${
      importState.state === 'failed'
        ? html`<p class="problem" role="alert">
            The import stopped: ${importState.message} Nothing is lost: do it again.
          </p>`
        : nothing
    }
    ${importState.state === 'done' ? summary(importState.summary) : nothing}`;
}

function summary(done: ImportSummary): TemplateResult {
  return html`<div class="card import-summary" data-imported=${done.written}>
      <h3>${count(done.written, 'record', 'records')} imported</h3>
      <p class="detail">
        ${Object.entries(done.rows).map(([file, rows]) => html`${file}: ${count(rows, 'row', 'rows')}<br />`)}
        ${done.alreadyThere > 0 ? html`${count(done.alreadyThere, 'was', 'were')} on this device already<br />` : nothing}
        ${done.refused > 0 ? html`<b class="bad">${done.refused} could not be stored</b>` : nothing}
      </p>
    </div>
    ${
      done.findings.length === 0
        ? html`<p class="hint">The files were clean.</p>`
        : html`<h3>What was not clean</h3>
            <ul class="findings">
              ${done.findings.map(finding)}
            </ul>`
    }`;
}

function finding(found: Finding): TemplateResult {
  return html`<li class="card" data-finding=${found.kind}>
    <details>
      <summary>
        <b>${found.count.toLocaleString('en')} ×</b> ${findingKinds[found.kind]} <code>${found.file}</code>
      </summary>
      <ul class="detail">
        ${found.examples.map((example) => html`<li>${example}</li>`)}
        ${found.count > found.examples.length ? html`<li>…</li>` : nothing}
      </ul>
    </details>
  </li>`;
}
