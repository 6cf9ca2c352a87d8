import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.js';

const parsed = (text: string): unknown => JSON.parse(text);

describe('canonical JSON', () => {
  it.each([
    ['{"b":1,"a":{"d":[2,1],"c":null}}', '{"a":{"c":null,"d":[2,1]},"b":1}'],
    ['{"10":1,"9":2,"b":3,"B":4}', '{"10":1,"9":2,"B":4,"b":3}'],
    ['{"b":1,"__proto__":{"z":1,"y":2},"a":2}', '{"__proto__":{"y":2,"z":1},"a":2,"b":1}'],
    ['{"toString":1,"constructor":{"b":1,"a":2}}', '{"constructor":{"a":2,"b":1},"toString":1}'],
    ['[]', '[]'],
    ['[[],{},"\\ud83d",-0,1e400]', '[[],{},"\\ud83d",0,null]'],
    ['"x"', '"x"'],
    ['null', 'null'],
  ])('O4 of %s is %s', (text, canonical) => {
    expect(canonicalJson(parsed(text))).toBe(canonical);
    expect(canonicalJson(parsed(canonicalJson(parsed(text))))).toBe(canonical);
  });

  it('O4 an undefined field is an absent one, in a list it is null: as it is stored', () => {
    expect(canonicalJson({ b: undefined, a: [undefined, 1] })).toBe('{"a":[null,1]}');
  });

  it('O4 changes nothing in what it is given', () => {
    const value = { b: 1, a: { d: 1, c: 2 } };
    canonicalJson(value);
    expect(JSON.stringify(value)).toBe('{"b":1,"a":{"d":1,"c":2}}');
  });

  it('O4 follows as deep as it goes', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level++) deep = level % 2 === 0 ? [deep] : { b: 1, a: deep };
    expect(canonicalJson(deep)).toMatch(/^\{"a":\[\{"a":\[/);
  });
});
