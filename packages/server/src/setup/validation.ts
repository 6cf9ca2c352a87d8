import { createHash } from 'node:crypto';
import { z } from 'zod';
import { parsed, pathPart, type Couch } from '../couch.js';
import type { Finding, Step } from './step.js';
import { validationText, type Purpose } from './validation-text.js';

const designDocument = z.object({
  _rev: z.string(),
  validate_doc_update: z.optional(z.string()),
  afield: z.optional(z.unknown()),
});

/** The design document that holds a database's validation. */
export const validationDocument = '_design/afield-validation';

/**
 * The validation of a database. Beside the text stands its hash: a text that fits its hash is one of ours, of this version
 * or an older one, and is brought up to date; any other was changed by a person.
 */
export function validationStep(couch: Couch, database: string, purpose: Purpose, owner?: string): Step {
  const path = `/${pathPart(database)}/${validationDocument}`;
  const text = validationText(purpose, owner);
  const stored = async (): Promise<z.infer<typeof designDocument> | undefined> => {
    const { status, body } = await couch.send('GET', path, { accept: [404] });
    return status === 404 ? undefined : parsed(designDocument, body);
  };
  return {
    title: `validation of ${database}`,
    look: async (): Promise<Finding> => {
      const doc = await stored();
      if (doc === undefined) return { state: 'missing' };
      if (doc.validate_doc_update === text) return { state: 'so' };
      const isOurs = doc.validate_doc_update !== undefined && doc.afield === hashOf(doc.validate_doc_update);
      if (isOurs) return { state: 'missing' };
      return { state: 'differs', is: 'a function that was changed by hand', wanted: 'the one of this version' };
    },
    make: async () => {
      const rev = (await stored())?._rev;
      const body = {
        ...(rev === undefined ? {} : { _rev: rev }),
        language: 'javascript',
        validate_doc_update: text,
        afield: hashOf(text),
      };
      await couch.send('PUT', path, { body });
    },
  };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
