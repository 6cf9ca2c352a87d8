import type { Couch } from '../couch.js';
import { checkedName, databaseOfUser, deviceRole, supervisorRole, type Layout } from '../databases.js';
import { ServerCommandError } from '../errors.js';
import { resultIndexes } from '../read/indexes.js';
import { corsSteps } from './cors.js';
import { databaseStep, securityStep } from './database.js';
import { indexStep } from './indexes.js';
import type { Step } from './step.js';
import { validationStep } from './validation.js';

/** What `setup` is asked for. */
export interface SetupWishes {
  readonly layout: Layout;
  /** Name of the database of results; with the layout `per-user` what the names of all begin with. */
  readonly results: string;
  readonly events: string;
  /** Databases of the app itself, which devices and supervisors may use. */
  readonly appDatabases: readonly string[];
  /** Who gets databases in the layout `per-user`. */
  readonly users: readonly string[];
  /** Origins of the app's pages; none leaves CORS as it is. */
  readonly origins: readonly string[];
}

/**
 * All steps, in their order. A database is opened to devices last, when its validation is there.
 * @throws ServerCommandError with code `usage` for a name that CouchDB does not allow
 */
export async function setupSteps(couch: Couch, wishes: SetupWishes): Promise<Step[]> {
  const { layout, users, appDatabases } = wishes;
  if (layout === 'shared' && users.length > 0) {
    throw new ServerCommandError('usage', '--user names whose databases are made: it goes with --layout per-user.');
  }
  const purposes = [
    { purpose: 'results', name: checkedName(wishes.results) },
    { purpose: 'events', name: checkedName(wishes.events) },
  ] as const;
  const shared = { members: { names: [], roles: [deviceRole, supervisorRole] } };
  const steps = [databaseStep(couch, '_users'), databaseStep(couch, '_replicator')];
  if (layout === 'shared') {
    for (const { purpose, name } of purposes) {
      steps.push(databaseStep(couch, name), validationStep(couch, name, purpose));
      if (purpose === 'results') steps.push(...resultIndexes.map((shape) => indexStep(couch, name, shape)));
      steps.push(securityStep(couch, name, shared));
    }
  }
  for (const user of users) {
    const own = { members: { names: [user], roles: [supervisorRole] } };
    for (const { purpose, name } of purposes) {
      const database = databaseOfUser(name, user);
      steps.push(databaseStep(couch, database), validationStep(couch, database, purpose, user));
      steps.push(securityStep(couch, database, own));
    }
  }
  for (const name of appDatabases) {
    // Who may use the app's own database is the app's affair, once somebody has said so.
    steps.push(databaseStep(couch, checkedName(name)), securityStep(couch, name, shared, { keepOther: true }));
  }
  return [...steps, ...(await corsSteps(couch, wishes.origins))];
}
