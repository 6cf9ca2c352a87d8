#!/usr/bin/env node
/*
 * npm run --silent afield-server -- COMMAND [OPTIONS]: installs what is missing, builds @afield/server and runs it.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildServerCommands } from './build.mjs';
import { installPackages } from './install.mjs';
import { command, root } from './run.mjs';

await command(async () => {
  await installPackages();
  await buildServerCommands();
  const { runCommandLine } = await import(pathToFileURL(join(root, 'packages', 'server', 'dist', 'cli.js')).href);
  return runCommandLine(process.argv.slice(2));
});
