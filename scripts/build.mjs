/* Builds the demo with the packages that it needs, and checks the types of everything. */
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { must, root, run, say } from './run.mjs';

const tsc = [process.execPath, join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b'];

export async function buildDemo() {
  say('Building the packages …');
  await must([...tsc, 'demo-app'], 'The packages do not compile');
  await buildPage();
}

export async function buildServer() {
  say('Building the server …');
  await must([...tsc, 'packages/devserver'], 'The server does not compile');
}

export async function buildServerCommands() {
  say('Building the commands for servers …');
  await must([...tsc, 'packages/server'], 'The commands do not compile');
}

/** Answers the exit code of the compiler. */
export function checkTypes() {
  return run(tsc);
}

export async function buildPage() {
  say('Building the demo …');
  const require = createRequire(join(root, 'demo-app', 'package.json'));
  const vite = join(require.resolve('vite/package.json'), '..', 'bin', 'vite.js');
  await must([process.execPath, vite, 'build', '--logLevel', 'warn'], 'The demo does not build', {
    quiet: true,
    cwd: join(root, 'demo-app'),
  });
}
