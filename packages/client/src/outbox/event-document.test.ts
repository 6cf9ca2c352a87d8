import { expect, it } from 'vitest';
import type { DocumentEvent } from '../model/event.js';
import { eventDocument, eventJson, readEventDocument } from './event-document.js';
import { eventOf } from './sample-event.fixture.js';

const event = eventOf('p1', 2);

it('O6 the event id is the `_id` of the document, and nothing of the event is lost on the way there and back', () => {
  const doc = eventDocument(event);
  expect(doc).toMatchObject({ _id: event.id, v: 1, name: 'documents.updated.person', previous: 's1:o:p1/1' });
  expect(doc).not.toHaveProperty('id');
  expect(readEventDocument({ ...doc, _rev: '1-x' })).toEqual({ kind: 'event', event });
});

it('S7 what an event does not have by its type does not leave the device', () => {
  const more = { ...event, password: 'secret' } as DocumentEvent;
  expect(eventDocument(more)).toEqual(eventDocument(event));
  expect(eventJson(more)).toBe(eventJson(event));
});

it('O6 the same event is the same text, in whatever order its fields stand', () => {
  const turned = Object.fromEntries(Object.entries(event).reverse()) as unknown as DocumentEvent;
  expect(eventJson(turned)).toBe(eventJson(event));
});

it('S10 unknown fields are passed over, a newer version is refused by its number', () => {
  expect(readEventDocument({ ...eventDocument(event), later: 1 })).toEqual({ kind: 'event', event });
  expect(readEventDocument({ _id: 'x', v: 2, name: 'documents.moved.person' })).toEqual({ kind: 'too-new', v: 2 });
});

it.each([
  ['a design document', { _id: '_design/x', views: {} }, 'other'],
  ['a result', { _id: 'r', v: 1, state: 'done' }, 'other'],
  ['an event without a sequence', { ...eventDocument(event), sequence: undefined }, 'damaged'],
  ['an event without a version', { ...eventDocument(event), v: undefined }, 'damaged'],
  ['an event with text for a number', { ...eventDocument(event), index: '0' }, 'damaged'],
])('S9 %s is no event', (_what, doc, kind) => {
  expect(readEventDocument(doc).kind).toBe(kind);
});
