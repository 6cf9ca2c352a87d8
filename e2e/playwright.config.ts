import { existsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';
import { chromiumArguments } from '@afield/demo-app/host';

/* `npm test` says which browser; by hand, Debian's Chromium is taken where it is, else Playwright's own. */
const usual = '/usr/bin/chromium';
const executablePath = process.env['AFIELD_CHROMIUM'] ?? (existsSync(usual) ? usual : undefined);

export default defineConfig({
  testDir: 'src',
  outputDir: 'test-results',
  timeout: 60_000,
  expect: { timeout: 15_000 },
  workers: 1,
  forbidOnly: true,
  reporter: 'list',
  use: {
    browserName: 'chromium',
    trace: 'retain-on-failure',
    launchOptions: {
      args: [...chromiumArguments],
      ...(executablePath === undefined ? {} : { executablePath }),
    },
  },
});
