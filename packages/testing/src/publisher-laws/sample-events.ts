import type { DocumentEvent } from '@afield/client';

/** An event with a value in every field; each number gives another one, of another document. */
export function sampleEvent(number: number, fields: Partial<DocumentEvent> = {}): DocumentEvent {
  const kind = (['new', 'updated', 'deleted'] as const)[number % 3] ?? 'new';
  return {
    id: `store-1:b:laws:${String(number)}`,
    name: `documents.${kind}.person`,
    kind,
    type: 'person',
    documentId: `person-${String(number)}`,
    store: 'store-1',
    sequence: 7,
    index: number,
    previous: number % 2 === 0 ? null : `store-1:b:earlier:${String(number)}`,
    key: `laws:${String(number)}`,
    rev: number % 4 === 3 ? null : `${String(number + 1)}-0123456789abcdef0123456789abcdef`,
    changed: number % 5 !== 4,
    at: Date.UTC(2026, 0, 1) + number,
    target: number % 2 === 0 ? 'server' : 'local',
    bulkOperationId: 'bulk-1',
    action: 'set-parent',
    ...fields,
  };
}

export function sampleEvents(count: number): readonly DocumentEvent[] {
  return Array.from({ length: count }, (_nothing, number) => sampleEvent(number));
}

/** Ids that are easily mixed up, cut, or taken for something else on their way. */
export const unusualIds: readonly string[] = [
  'a/b',
  'a%2Fb',
  'a%b',
  'a b',
  'a+b',
  'a#b',
  'a?b=c&d',
  'a:b:o:c~1',
  'a"b\\c',
  'a,b;c="d"',
  'line\nbreak\ttab',
  'é', // one character
  'e\u0301', // the same to the eye, in two
  'ñandú 日本語 😀',
  'constructor',
  'toString',
  '../a',
  'A/B',
];
