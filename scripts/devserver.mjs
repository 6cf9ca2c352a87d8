#!/usr/bin/env node
/*
 * npm run devserver [-- OPTIONS]: installs what is missing, builds the server for development and starts it.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildServer } from './build.mjs';
import { installPackages } from './install.mjs';
import { endWithNpm } from './parents.mjs';
import { atEnd, command, root } from './run.mjs';

endWithNpm();

await command(async () => {
  await installPackages();
  await buildServer();
  const cli = await import(pathToFileURL(join(root, 'packages', 'devserver', 'dist', 'cli.js')).href);
  const running = await cli.runCommandLine(process.argv.slice(2));
  if (running) atEnd(() => running.close());
  return process.exitCode ?? 0;
});
