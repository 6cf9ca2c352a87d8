#!/usr/bin/env node
import { runCommandLine } from '../dist/cli.js';

await runCommandLine(process.argv.slice(2));
