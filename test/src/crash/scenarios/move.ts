import type { Doc } from '@afield/client';
import { contactsIndex, moveContact } from '@afield/contacts';
import { wrongLineages, type MemoryDatabase } from '@afield/testing';
import type { App, Scenario } from '../scenario.js';
import type { CrashWorld } from '../world.js';
import { codesAre, outcomesAre } from './expectations.js';

const centre = { _id: 'h1', parent: { _id: 'd1' } };
const [clinic1, clinic2] = [
  { _id: 'c1', parent: centre },
  { _id: 'c2', parent: centre },
];
const person = (_id: string, clinic: object): { readonly _id: string; readonly parent: object } => ({
  _id,
  parent: clinic,
});

const documents = [
  { _id: 'd1', type: 'district', contact: person('p1', clinic1) },
  { _id: 'd2', type: 'district' },
  { _id: 'h1', type: 'centre', parent: { _id: 'd1' }, contact: person('p1', clinic1) },
  { _id: 'c1', type: 'clinic', parent: centre, contact: person('p2', clinic1) },
  { _id: 'c2', type: 'clinic', parent: centre },
  ...['p1', 'p2'].map((id) => ({ ...person(id, clinic1), type: 'person' })),
  ...['p3', 'p4'].map((id) => ({ ...person(id, clinic2), type: 'person' })),
  ...['p1', 'p3'].map((id) => ({
    _id: `r-${id}`,
    type: 'data_record',
    form: 'visit',
    contact: person(id, id === 'p1' ? clinic1 : clinic2),
    fields: { patient_uuid: 'p2' },
  })),
  // These stay as they are.
  { _id: 'h2', type: 'centre', parent: { _id: 'd2' }, contact: person('p9', { _id: 'h2', parent: { _id: 'd2' } }) },
  { _id: 'p9', type: 'person', parent: { _id: 'h2', parent: { _id: 'd2' } } },
  {
    _id: 'r-p9',
    form: 'visit',
    contact: person('p9', { _id: 'h2', parent: { _id: 'd2' } }),
    fields: { patient_uuid: 'p1' },
  },
];
/** Seven contacts get another parent; two reports and three places another contact. */
const operations = 12;

const queueMove =
  (key: string) =>
  (app: App): Promise<void> =>
    app.queue({ target: 'local', key, plan: 'move-contact', request: { id: 'h1', parent: 'd2' } });

export const move: Scenario = {
  name: 'move',
  lines: 'R3 R17 S2',
  says: 'a contact moves with all below it, by a plan that asks an index; then the same is asked again',
  targets: ['local'],
  options: { plans: [moveContact], indexes: [contactsIndex] },
  documents,
  steps: [queueMove('first'), (app) => app.settled(), queueMove('again')],
  expected: (world) => [
    ...outcomesAre(world, 'first', ...Array<string>(operations).fill('applied')),
    ...outcomesAre(world, 'again'),
    ...codesAre(world),
    ...lineagesAre(world.local, 'on the device'),
    ...lineagesAre(world.records, 'on the server'),
    ...untouched(world),
  ],
};

/** Each lineage is right, and that of the contact that has moved is a new one. */
function lineagesAre(database: MemoryDatabase, where: string): readonly string[] {
  const docs = database.ids().flatMap((id) => (database.read(id) ?? []) as Doc | readonly Doc[]);
  const moved = docs.find(({ _id }) => _id === 'h1');
  return [
    ...wrongLineages(docs).map(({ id, field }) => `the lineage in ${field} of ${id} is wrong ${where}`),
    ...((moved?.['parent'] as Doc | undefined)?._id === 'd2' ? [] : [`h1 is not below d2 ${where}`]),
  ];
}

function untouched({ local }: CrashWorld): readonly string[] {
  const ids = ['d2', 'h2', 'p9', 'r-p9'];
  return ids.filter((id) => local.tree(id)?.winner?.rev.startsWith('1-') !== true).map((id) => `${id} was changed`);
}
