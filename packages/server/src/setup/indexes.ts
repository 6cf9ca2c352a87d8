import { z } from 'zod';
import { parsed, pathPart, type Couch } from '../couch.js';
import type { Finding, Step } from './step.js';

/** An index of a database that devices share. Each has a design document of its own, so that one is built without the others. */
export interface IndexShape {
  readonly ddoc: string;
  readonly name: string;
  readonly fields: readonly string[];
}

const ascending = z.record(z.string(), z.string());
const storedIndexes = z.object({
  indexes: z.array(
    z.object({
      ddoc: z.nullable(z.string()),
      name: z.string(),
      def: z.object({ fields: z.optional(z.array(ascending)) }),
    }),
  ),
});

/** An index that has to be there. */
export function indexStep(couch: Couch, database: string, { ddoc, name, fields }: IndexShape): Step {
  const path = `/${pathPart(database)}/_index`;
  const wanted = fields.join(', ');
  const found = async (): Promise<string | undefined> => {
    const { status, body } = await couch.send('GET', path, { accept: [404] });
    if (status === 404) return undefined;
    const { indexes } = parsed(storedIndexes, body);
    const index = indexes.find((one) => one.ddoc === `_design/${ddoc}` && one.name === name);
    return index === undefined ? undefined : (index.def.fields ?? []).flatMap((one) => Object.keys(one)).join(', ');
  };
  return {
    title: `index ${name} of ${database}`,
    look: async (): Promise<Finding> => {
      const is = await found();
      if (is === undefined) return { state: 'missing' };
      return is === wanted ? { state: 'so' } : { state: 'differs', is, wanted };
    },
    make: async () => {
      if ((await found()) !== undefined) await couch.send('DELETE', `${path}/${pathPart(ddoc)}/json/${pathPart(name)}`);
      await couch.send('POST', path, { body: { ddoc, name, type: 'json', index: { fields } } });
    },
  };
}
