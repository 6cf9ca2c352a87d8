import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Tests wait for states, not for times: on a busy machine that takes longer, and this is for what never ends.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 8000 } },
    include: [
      'packages/*/src/**/*.test.ts',
      'demo-app/{src,host}/**/*.test.ts',
      'test/{src,fleet/src}/**/*.test.ts',
      'scripts/**/*.test.mjs',
    ],
  },
});
