import type { ErrorSummary, TransferStatus } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { count, countdown, wordsOfError, type Words } from '../words.js';

/** How one kind of traffic with the server is going. */
export interface TransferCard {
  /** For tests. */
  readonly name: string;
  readonly title: string;
  readonly state: string;
  readonly words: Words;
  /** What is tried again: the traffic itself, or what it waits for. */
  readonly awaited: TransferStatus;
  /** What is counted, in words. */
  readonly amounts: string;
}

export function transferCard(
  { name, title, state, words, awaited, amounts }: TransferCard,
  now: number,
): TemplateResult {
  return html`<div class="card" data-transfer=${name} data-state=${state}>
    <dt>${title}</dt>
    <dd>
      ${badge(words)} ${waiting(awaited.attempt, awaited.nextAttemptAt, errorNow(awaited), now)}
      <p class="detail">${amounts}</p>
    </dd>
  </div>`;
}

/** The last error counts only while it is in the way: afterwards it would say the opposite of what is true. */
export function errorNow({
  state,
  lastError,
}: {
  state: string;
  lastError: ErrorSummary | undefined;
}): ErrorSummary | undefined {
  return state.startsWith('waiting') || state === 'failed' ? lastError : undefined;
}

export function badge(words: Words): TemplateResult {
  return html`<span class="badge ${words.mood}">${words.text}</span>`;
}

/** What is in the way, how often it was tried, and when the next try is. */
export function waiting(
  attempt: number,
  nextAttemptAt: number | undefined,
  lastError: ErrorSummary | undefined,
  now: number,
): TemplateResult | typeof nothing {
  if (nextAttemptAt === undefined && lastError === undefined) return nothing;
  return html`<p class="waiting">
    ${lastError === undefined ? nothing : html`<span class="error">${wordsOfError(lastError)}.</span>`}
    ${attempt > 0 ? html`<span class="attempt">Tried ${count(attempt, 'time', 'times')}.</span>` : nothing}
    ${
      nextAttemptAt === undefined
        ? nothing
        : html`<span class="next">Next try <b>${countdown(nextAttemptAt, now)}</b></span>`
    }
  </p>`;
}
