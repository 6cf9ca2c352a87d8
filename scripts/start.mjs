#!/usr/bin/env node
/*
 * npm start                         the demo with its embedded server
 * npm start -- --once [--data DIR]  the main job without a person; prints one JSON line
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { buildDemo } from './build.mjs';
import { findBrowser } from './browser.mjs';
import { endWithNpm } from './parents.mjs';
import { installPackages } from './install.mjs';
import { atEnd, command, root, say, StepError } from './run.mjs';

endWithNpm();

const voice = { say, print: (line) => process.stdout.write(`${line}\n`), atEnd };

await command(async () => {
  const { once, data } = readArguments();
  await installPackages();
  await buildDemo();
  const host = await import(pathToFileURL(join(root, 'demo-app', 'dist', 'host', 'index.js')).href);
  try {
    if (once) {
      const executablePath = await findBrowser();
      return await host.runOnce({ ...voice, data, executablePath });
    }
    await host.runDemo(voice);
    return 0;
  } catch (error) {
    throw error instanceof host.DemoError ? new StepError(error.message) : error;
  }
});

function readArguments() {
  try {
    const options = { once: { type: 'boolean', default: false }, data: { type: 'string' } };
    const { values } = parseArgs({ options, args: process.argv.slice(2) });
    if (values.data !== undefined && !values.once) throw new Error('--data goes with --once');
    return values;
  } catch (error) {
    throw new StepError(`${error.message}. Usage: npm start [-- --once [--data DIR]]`);
  }
}
