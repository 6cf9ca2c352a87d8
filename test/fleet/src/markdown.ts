/** A table: the first `left` columns are aligned to the left, the others to the right. Prettier brings it into its form. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[], left: number): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(headings), line(headings.map((_, at) => (at < left ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

/** The cells of the column with this heading, by the first cell of their row. Throws where there is no such column. */
export function columnOf(markdown: string, heading: string): Map<string, string> {
  const rows = markdown
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  const at = rows[0]?.indexOf(heading) ?? -1;
  if (at < 0) throw new RangeError(`The table has no column ${heading}.`);
  return new Map(rows.slice(2).map((row) => [row[0] ?? '', row[at] ?? '']));
}

const begin = (name: string): string => `<!-- ${name}: written by \`npm run simulate:cluster\` -->`;
const end = (name: string): string => `<!-- end of ${name} -->`;

/** The text between the marks of a block. Throws where the page has no such block. */
export function blockOf(page: string, name: string): string {
  const [before, after] = [page.indexOf(begin(name)), page.indexOf(end(name))];
  if (before < 0 || after < before) throw new RangeError(`The page has no block ${name}.`);
  return page.slice(before + begin(name).length, after).trim();
}

/** The page with another text in a block. */
export function withBlock(page: string, name: string, text: string): string {
  blockOf(page, name);
  const before = page.slice(0, page.indexOf(begin(name)) + begin(name).length);
  return `${before}\n\n${text}\n\n${page.slice(page.indexOf(end(name)))}`;
}
