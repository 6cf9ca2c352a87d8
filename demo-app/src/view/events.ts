import type { DocumentEvent, PublisherStatus } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { mostEvents } from '../last-events.js';
import { count } from '../words.js';
import { nameOf } from './record-name.js';
import type { ViewState } from './state.js';
import { transferCard } from './transfer.js';

export function eventsPanel(state: ViewState): TemplateResult {
  const { events, status } = state;
  return html`<p class="hint">
      Each change of a record has one event. All tabs are told at once; the server gets it when it has the record.
    </p>
    ${status === undefined ? html`<p class="hint">Opening the queue …</p>` : publishers(state, status.publishers, status.leader)}
    <h3 class="last">The last events</h3>
    ${
      events.length === 0
        ? html`<p class="empty">There are no events yet. Move a person, or queue a request under “Conflicts”.</p>`
        : html`<ol class="events">
              ${repeat(
                events,
                ({ id }) => id,
                (event) => row(event, state),
              )}
            </ol>
            ${events.length < mostEvents ? nothing : html`<p class="hint">Older events are not shown here.</p>`}`
    }`;
}

function publishers(
  state: ViewState,
  all: Readonly<Record<string, PublisherStatus>>,
  isLeader: boolean,
): TemplateResult {
  if (!isLeader)
    return html`<p class="card detail other-tab">Another tab publishes the events. It shows how far it is.</p>`;
  return html`<dl class="transfers">
    ${Object.entries(all).map(([name, one]) => transferCard(`publisher-${name}`, 'Events to the server', one, state.now, amounts(one)))}
  </dl>`;
}

function amounts({ unpublished, transferred }: PublisherStatus): string {
  const waiting =
    unpublished === 0 ? 'None waits' : `${count(unpublished, 'event is', 'events are')} not published yet`;
  return `${waiting} · ${count(transferred, 'published so far', 'published so far')}`;
}

function row(event: DocumentEvent, state: ViewState): TemplateResult {
  return html`<li class="card" data-event=${event.id} data-kind=${event.kind}>
    <header>
      <h3>${nameOf({ id: event.documentId }, state)}</h3>
      <span class="detail">#${event.sequence}, change ${event.index + 1}</span>
    </header>
    <code>${event.name}</code>
    <p class="detail">
      <span>Changed: ${event.changed ? 'yes' : 'no, it was so already'}</span>
      · <span>Event before it: ${event.previous === null ? 'no' : 'yes'}</span>
    </p>
  </li>`;
}
