import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

type Tables = Readonly<Record<string, readonly (readonly string[])[]>>;

/** The rows of each table in a page, under the heading that it follows. */
function tablesOf(page: string): Tables {
  const tables: Record<string, string[][]> = {};
  for (const [heading = '', ...lines] of page.split(/^## /m).map((part) => part.split('\n'))) {
    const rows = lines.filter((line) => line.startsWith('|')).map((line) => line.split('|').slice(1, -1));
    // The first two lines are the names of the columns and the line below them.
    tables[heading] = rows.slice(2).map((cells) => cells.map((cell) => cell.trim()));
  }
  return tables;
}

it('R7 docs/classification.md shows the table that the code uses', async () => {
  const file = join(root, 'packages/client/src/retry/table-page.fixture.ts');
  const { tablePage } = (await import(/* @vite-ignore */ file)) as { tablePage: () => Tables };
  const page = tablesOf(await readFile(join(root, 'docs/classification.md'), 'utf8'));
  const wanted = tablePage();
  expect(Object.keys(wanted).length).toBeGreaterThan(0);
  for (const [heading, rows] of Object.entries(wanted)) expect(page[heading], heading).toEqual(rows);
});
