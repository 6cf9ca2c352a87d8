import { html, render } from 'lit';
import { openDemo } from './demo.js';
import { loadConfig } from './config.js';
import { Screen } from './view/screen.js';

async function main(root: HTMLElement): Promise<void> {
  const demo = await openDemo(await loadConfig(), new URLSearchParams(location.search));
  root.replaceChildren();
  new Screen(demo, root).show();
  window.afieldDemo = demo;
}

const root = document.getElementById('app');
if (root) {
  main(root).catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    root.replaceChildren();
    render(html`<p class="starting" role="alert">The demo could not start. ${message}</p>`, root);
  });
}
