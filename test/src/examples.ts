import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The examples of a page, each as a module of its own. */
export interface Examples {
  readonly files: readonly string[];
  /** What the compiler says of them in strict mode; empty when all is well. */
  compile(): Promise<string>;
  remove(): Promise<void>;
}

/** Takes the blocks marked `ts` out of a page of this workspace. */
export async function examplesOf(page: string): Promise<Examples> {
  const text = await readFile(join(root, page), 'utf8');
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block]) => block ?? '');
  const folder = await mkdtemp(join(root, 'test', 'readme-'));
  const files = blocks.map((_block, at) => join(folder, `example-${String(at)}.ts`));
  await Promise.all(files.map((file, at) => writeFile(file, blocks[at] ?? '')));
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../tsconfig.base.json',
      compilerOptions: { composite: false, noEmit: true, types: ['node'] },
    }),
  );
  return {
    files,
    compile: async () => {
      const tsc = join(createRequire(join(root, 'package.json')).resolve('typescript/package.json'), '../bin/tsc');
      const run = promisify(execFile)(process.execPath, [tsc, '-p', folder]);
      const { stdout } = (await run.catch((error: unknown) => error)) as { stdout: string };
      return stdout;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
