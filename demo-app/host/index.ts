export { runDemo } from './run-demo.js';
export { DemoError } from './demo-error.js';
export { runOnce } from './run-once.js';
export { serveDemo, sampleFolder, type RunningDemo, type ServeOptions } from './serve.js';
export { chromiumArguments } from './chromium-arguments.js';
export { allDocuments, ask, askFor, type Couch, type StoredDocument } from './couch.js';
