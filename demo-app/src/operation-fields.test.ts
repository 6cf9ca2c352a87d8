import { describe, expect, it } from 'vitest';
import { fieldsOf, operationOf } from './operation-fields.js';

describe('the fields of a failed operation', () => {
  it('R19 what was queued comes back as it was when nothing is edited', () => {
    const content = {
      text: 'two words',
      number: 7,
      nothing: null,
      empty: '',
      digits: '7',
      spaced: ' x ',
      quoted: '"x"',
      broken: '{x',
      lineage: { _id: 'c2', parent: { _id: 'h1' } },
    };
    const fields = fieldsOf('some-action', { id: '7', content });
    expect(operationOf(fields ?? [])).toEqual({ operation: { id: '7', ...content } });
  });

  it('R19 shows a text without quotes, and offers the fields of the action that are not there', () => {
    expect(fieldsOf('set-parent', { content: { current_parent_id: 'c1' } })).toEqual([
      { name: 'id', text: '' },
      { name: 'current_parent_id', text: 'c1' },
      { name: 'parent', text: '' },
    ]);
  });

  it('R19 leaves out what is empty, and names the field that cannot be read', () => {
    expect(operationOf([{ name: 'id', text: ' ' }])).toEqual({ operation: {} });
    expect(
      operationOf([
        { name: 'id', text: 'p1' },
        { name: 'parent', text: '{ "_id": ' },
      ]),
    ).toEqual({ problems: new Map([['parent', expect.stringContaining('not JSON') as string]]) });
  });

  it('R19 has none for an edit of the app, which was no operation', () => {
    expect(fieldsOf(undefined, undefined)).toBeUndefined();
    expect(fieldsOf('constructor', { id: 5, content: {} })).toEqual([{ name: 'id', text: '5' }]);
  });
});
