import { describe, expect, it } from 'vitest';
import { writerOf } from './format.js';

describe('lists', () => {
  it('S1 a line of JSON moves no cursor of a terminal', () => {
    const row = { id: 'a\u001b[2J\u009b2J\u007f\nb' };
    const line = writerOf('jsonl', ['id']).row(row);
    expect(line).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(line)).toEqual(row);
  });

  it.each([
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@a', "'@a"],
    ['\ta', "'\ta"],
    ['\uff1d1', "'\uff1d1"],
    [-1, '-1'],
    [['=a', 'b'], "'=a b"],
    [{ a: '=1' }, '"{""a"":""=1""}"'],
    ['a "b"\r\nc', '"a ""b""\r\nc"'],
    [null, ''],
    [true, 'true'],
  ])('S1 a cell of CSV with %j is %j', (value, text) => {
    expect(writerOf('csv', ['first', 'value']).row({ value, first: 'x' })).toBe(`x,${text}\r\n`);
  });
});
