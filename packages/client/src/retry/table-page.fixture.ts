import { answerRules, errorRules, networkTable, otherAnswers, rowTable, storeTable, type WordTable } from './table.js';

/** The tables of `docs/classification.md` as they must be: rows of cells under the heading of each. */
export function tablePage(): Readonly<Record<string, readonly (readonly string[])[]>> {
  return {
    'Answers of the server': [
      ...answerRules.map(({ statuses, body, header, error, anyService, meaning }) => [
        statuses.map((one) => (typeof one === 'number' ? String(one) : one.join('–'))).join(', ') +
          (header === undefined ? '' : ` with \`${header}\``) +
          (error === undefined ? '' : ` \`${error}\``),
        body === 'any' ? 'any' : 'CouchDB’s error',
        ...cellsOf(meaning),
        anyService === true ? 'yes' : '',
      ]),
      ['everything else', 'any', ...cellsOf(otherAnswers), ''],
    ],
    'Rows of a bulk write': wordRows(rowTable),
    'Errors of the local store': wordRows(storeTable),
    'Errors of the network': wordRows(networkTable),
    'What ends an attempt': [
      ...errorRules.map(({ type, kind }) => [`\`${type.name}\``, kind]),
      ['everything else', 'bug'],
    ],
  };
}

interface Cells {
  readonly kind: string;
  readonly class?: string;
  readonly code?: string;
}

function cellsOf({ kind, class: errorClass = '', code = '' }: Cells): string[] {
  return [kind, errorClass, code === '' || code.startsWith('(') ? code : `\`${code}\``];
}

function wordRows(table: WordTable<Cells>): string[][] {
  return [
    ...table.rules.map(({ words, meaning }) => [words.map((word) => `\`${word}\``).join(', '), ...cellsOf(meaning)]),
    ['everything else', ...cellsOf(table.others)],
  ];
}
