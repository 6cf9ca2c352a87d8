import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'packages/*/src/**/*.test.ts',
      'demo-app/{src,host}/**/*.test.ts',
      'test/{src,fleet/src}/**/*.test.ts',
      'scripts/**/*.test.mjs',
    ],
  },
});
