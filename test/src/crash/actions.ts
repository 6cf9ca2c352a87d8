import { createAction, defineDocumentAction, deleteAction, updateAction, type DocumentAction } from '@afield/client';
import { setContact, setParent } from '@afield/contacts';
import { z } from 'zod/mini';

const builtIn = [createAction, updateAction, deleteAction];
/** Those that every client has. */
export const builtInNames: ReadonlySet<string> = new Set(builtIn.map(({ name }) => name));

/** The actions of the app by their names; `set-colour` has a bug while `isBroken` says so. */
export function actionsOf(isBroken: () => boolean): ReadonlyMap<string, DocumentAction> {
  const setColour = defineDocumentAction({
    name: 'set-colour',
    operation: z.strictObject({ to: z.string() }),
    isApplied: (doc, { to }) => doc['colour'] === to,
    apply: (doc, { to }) => {
      if (isBroken()) throw new TypeError('The app has a bug.');
      return { ...doc, colour: to };
    },
  });
  const all = [setParent, setContact, setColour, ...builtIn] as unknown as readonly DocumentAction[];
  return new Map(all.map((action) => [action.name, action]));
}
