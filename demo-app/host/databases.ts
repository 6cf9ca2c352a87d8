import { ask, askFor, type Couch } from './couch.js';
import { DemoError } from './demo-error.js';

export interface DatabaseNames {
  readonly app: string;
  readonly results: string;
  readonly events: string;
}

export const usualNames: DatabaseNames = { app: 'afield-demo', results: 'afield-results', events: 'afield-events' };

const designId = '_design/afield-demo';

/* Runs in the server. Written for old engines too: CouchDB's own is one. */
const validate = `function (newDoc, oldDoc, userCtx) {
  if (newDoc._deleted || newDoc.type !== 'person') return;
  if (!newDoc.parent || !newDoc.parent._id) throw { forbidden: 'a person must have a place' };
}`;

/** Makes what is missing; what is there stays. Doing it twice, or after it was cut off, does no harm. */
export async function createDatabases(couch: Couch, names: DatabaseNames): Promise<void> {
  for (const name of Object.values(names)) {
    const { status, body } = await ask(couch, 'PUT', name);
    if (status === 401 || status === 403) {
      throw new DemoError(`The CouchDB at ${couch.address} does not let this name and password make databases`);
    }
    if (status >= 300 && status !== 412) throw new Error(`PUT ${name}: ${String(status)} ${JSON.stringify(body)}`);
  }
  const stored = await ask(couch, 'GET', `${names.app}/${designId}`);
  const before = stored.status === 200 ? (stored.body as { _rev: string; validate_doc_update?: string }) : undefined;
  if (before?.validate_doc_update === validate) return;
  const design = { _id: designId, language: 'javascript', validate_doc_update: validate };
  await askFor(couch, 'PUT', `${names.app}/${designId}`, before ? { ...design, _rev: before._rev } : design);
}

export async function removeDatabases(couch: Couch, names: DatabaseNames): Promise<void> {
  for (const name of Object.values(names)) await ask(couch, 'DELETE', name);
}
