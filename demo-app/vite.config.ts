import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  build: { outDir: 'dist/page', emptyOutDir: true, sourcemap: true, target: ['chrome90', 'safari15.4', 'firefox115'] },
});
