import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { brokenText, recordedBreaks } from './breaks-recorded.mjs';
import { root } from './run.mjs';
import { carries, chosenLines, linesOf } from './spec-lines.mjs';

describe('the recorded breaks', () => {
  it.each(recordedBreaks().map((mistake) => [mistake.why, mistake]))(
    'can still be made, or must be recorded anew in test/breaks: %s',
    (_, mistake) => {
      expect(brokenText(readFileSync(join(root, mistake.file), 'utf8'), mistake).reason).toBeUndefined();
      expect(mistake.tests.filter((file) => !existsSync(join(root, file)))).toEqual([]);
      expect(linesOf(mistake.line[0])).toContain(mistake.line);
    },
  );

  it('a break that fits nowhere, twice, or leaves no TypeScript is none', () => {
    const mistake = { file: 'x.ts', find: 'a', replace: 'b' };
    expect(brokenText('const one: number = 1;', { ...mistake, find: 'one', replace: 'two' })).toEqual({
      text: 'const two: number = 1;',
    });
    expect(brokenText('const x = 1;', mistake).reason).toMatch(/occurs 0 times/);
    expect(brokenText('a + a;', mistake).reason).toMatch(/occurs 2 times/);
    expect(brokenText(undefined, mistake).reason).toMatch(/occurs 0 times/);
    expect(brokenText('if (a) { }', { ...mistake, find: '{' }).reason).toMatch(/no TypeScript/);
  });
});

describe('lines of the specification', () => {
  it('are chosen by part, by number, or all of them', () => {
    expect(chosenLines(['--', 'V'])).toEqual(['V1', 'V2', 'V3']);
    expect(chosenLines(['R8'])).toEqual(['R8']);
    expect(chosenLines([], ['V'])).toEqual(['V1', 'V2', 'V3']);
    expect(() => chosenLines(['R99'])).toThrow(/no part or line R99/);
  });

  it('are carried by a title as a word', () => {
    expect(carries('R2 R14 an event', 'R14')).toBe(true);
    expect(carries('R14 an event', 'R1')).toBe(false);
  });
});
