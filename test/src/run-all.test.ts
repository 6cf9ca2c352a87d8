import { readCases, type CaseReport } from '@afield/testing';
import { describe, expect, it } from 'vitest';
import type { FoundCases, Pending } from './find-cases.js';
import { runAll, type Summary } from './run-all.js';

function found(isOurs: boolean, ...names: string[]): FoundCases {
  const chosen = names.flatMap((id) =>
    readCases(
      JSON.stringify({
        ...{ id, title: `about ${id}`, kind: 'test', set: 'HAND', source: [], target: 'server' },
        ...{ seed_docs: [], server_docs: [], operations: [], expect: { state: 'idle' } },
      }),
      `${id}.json`,
    ),
  );
  return { folder: 'cases', isOurs, chosen, allNames: new Set([...names, 'C99']) };
}

async function run(
  pending: Pending,
  runPending: boolean,
  reports: Readonly<Record<string, Partial<CaseReport>>>,
  isOurs = true,
): Promise<{ summary: Summary; lines: readonly string[]; ran: readonly string[] }> {
  const lines: string[] = [];
  const ran: string[] = [];
  const summary = await runAll(found(isOurs, ...Object.keys(reports)), pending, {
    run: ({ name, title }) => {
      ran.push(name);
      return Promise.resolve({ name, title, impossible: undefined, failures: [], ...reports[name] });
    },
    software: 'the embedded server',
    runPending,
    print: (line) => lines.push(line),
  });
  return { summary, lines, ran };
}

describe('a run of all cases', () => {
  it('prints a line for each case, and the sums at the end', async () => {
    const { summary, lines } = await run({}, false, {
      C01: {},
      C02: { failures: ['state: expected "done", but it is "idle"'] },
    });
    expect(lines).toEqual([
      'passed   C01  about C01',
      'FAILED   C02  about C02',
      '           state: expected "done", but it is "idle"',
      'cases of cases on the embedded server, 0 pending',
      '1 passed, 1 failed',
    ]);
    expect(summary).toEqual({
      passed: 1,
      pending: 0,
      failures: ['C02: state: expected "done", but it is "idle"'],
    });
  });

  it('prints what is pending, and neither runs nor counts it as passed', async () => {
    const { summary, lines, ran } = await run({ C02: 'not built yet' }, false, { C01: {}, C02: { failures: ['x'] } });
    expect(lines).toContain('pending  C02  about C02: not built yet');
    expect(lines.at(-2)).toContain(', 1 pending');
    expect(ran).toEqual(['C01']);
    expect(summary).toMatchObject({ passed: 1, pending: 1, failures: [] });
  });

  it('says with --pending which of them pass now, and fails for none of them', async () => {
    const { summary, lines } = await run({ C01: 'old', C02: 'not built yet' }, true, {
      C01: {},
      C02: { failures: ['x'] },
    });
    expect(lines[0]).toBe('pending  C01  about C01: old\n           PASSES NOW: take it off the list');
    expect(lines[1]).toBe('pending  C02  about C02: not built yet\n           x');
    expect(summary.failures).toEqual([]);
  });

  it('fails when a pending case does not exist', async () => {
    const { summary } = await run({ C77: 'gone', C99: 'only not chosen' }, false, { C01: {} });
    expect(summary.failures).toEqual(['C77 is listed as pending, but there is no such case']);
    const elsewhere = await run({ C77: 'gone' }, false, { C01: {} }, false);
    expect(elsewhere.lines[0]).toBe('note     C77 is listed as pending, but there is no such case');
    expect(elsewhere.summary.failures).toEqual([]);
  });
});
