/* The numbered lines of the specification, and the tests that carry them: a test's title names its line (`R8 …`). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, StepError } from './run.mjs';

/** How many lines each part of the specification has. */
const parts = JSON.parse(readFileSync(join(root, 'test', 'spec-lines.json'), 'utf8'));

/** The names of all parts: R, O, … */
export const partNames = Object.keys(parts);

/** `R1` … of one part, in their order. */
export function linesOf(part) {
  return Array.from({ length: parts[part] }, (_, at) => `${part}${at + 1}`);
}

/** The lines that the arguments of a command choose: parts (`R`) and single lines (`R8`); none chooses `all`. */
export function chosenLines(given, all = partNames) {
  const chosen = given.filter((argument) => argument !== '--');
  return (chosen.length === 0 ? all : chosen).flatMap((one) => {
    const lines = partNames.includes(one) ? linesOf(one) : partNames.flatMap(linesOf).filter((line) => line === one);
    if (lines.length > 0) return lines;
    throw new StepError(`There is no part or line ${one}. Parts: ${partNames.join(', ')}; a line: R8`);
  });
}

/** Whether a title carries the number of a line: `R1` is not in `R10 …`. */
export function carries(title, line) {
  return new RegExp(`\\b${line}\\b`).test(title);
}
