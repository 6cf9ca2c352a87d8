import type { ClientStatus, DocumentEvent, PublisherStatus, TransferStatus } from '@afield/client';
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { mostEvents } from '../last-events.js';
import { count, waitsForRecords, wordsOfPublisher } from '../words.js';
import { nameOf } from './record-name.js';
import type { ViewState } from './state.js';
import { transferCard } from './transfer.js';

export function eventsPanel(state: ViewState): TemplateResult {
  const { events, status } = state;
  return html`<p class="hint">
      Each change of a record has one event. All tabs are told at once; the server gets it when it has the record.
    </p>
    ${status === undefined ? html`<p class="hint">Opening the queue …</p>` : publishers(status, state.now)}
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

function publishers(status: ClientStatus, now: number): TemplateResult {
  if (!status.leader)
    return html`<p class="card detail other-tab">Another tab publishes the events. It shows how far it is.</p>`;
  return html`<dl class="transfers">
    ${Object.entries(status.publishers).map(([name, one]) => publisher(name, one, status.push, now))}
  </dl>`;
}

function publisher(name: string, one: PublisherStatus, push: TransferStatus, now: number): TemplateResult {
  const card = { name: `publisher-${name}`, title: 'Events to the server', state: one.state };
  return transferCard(
    { ...card, words: wordsOfPublisher(one), awaited: awaitedBy(one, push), amounts: amounts(one) },
    now,
  );
}

/** An event that waits for its record is tried when the record has got there: then the next try is the push's. */
function awaitedBy(one: PublisherStatus, push: TransferStatus): TransferStatus {
  if (!waitsForRecords(one)) return one;
  return push.state === 'idle' ? { ...one, lastError: undefined } : push;
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
