/*
 * The recorded mistakes, test/breaks/<part>.json: a list of
 *   { line, why, file, find, replace, tests }
 * `find` occurs exactly once in `file`; `tests` are the test files that must notice; `why` says the mistake in words.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root, StepError } from './run.mjs';

/** The compiler, when it is needed: in a fresh clone there are no packages when this file is read. */
const compiler = () => createRequire(import.meta.url)('typescript');

const fields = ['line', 'why', 'file', 'find', 'replace'];

export function recordedBreaks() {
  const folder = join(root, 'test', 'breaks');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')))
    .map((mistake) => {
      const isText = fields.every((field) => typeof mistake[field] === 'string');
      if (isText && Array.isArray(mistake.tests) && mistake.tests.length > 0) return mistake;
      throw new StepError(`A recorded break lacks ${fields.join(', ')} or tests: ${JSON.stringify(mistake)}`);
    });
}

/** The source with the mistake in it, or the reason why it cannot be made. A syntax error is no proof. */
export function brokenText(source, { file, find, replace }) {
  const times = source === undefined ? 0 : source.split(find).length - 1;
  if (times !== 1) return { reason: `what is to be replaced occurs ${times} times in ${file}, not once` };
  const text = source.split(find).join(replace);
  const ts = compiler();
  const { diagnostics } = ts.transpileModule(text, {
    fileName: file,
    reportDiagnostics: true,
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const [error] = diagnostics ?? [];
  if (error === undefined) return { text };
  return { reason: `the broken source is no TypeScript: ${ts.flattenDiagnosticMessageText(error.messageText, ' ')}` };
}
