import { z } from 'zod';
import { pathPart, type Couch } from '../couch.js';
import type { Finding, Step } from './step.js';

/** Who may use a database: admins of it, and members who read and write. */
export interface Security {
  readonly admins: { readonly names: readonly string[]; readonly roles: readonly string[] };
  readonly members: { readonly names: readonly string[]; readonly roles: readonly string[] };
}

const names = z.optional(z.array(z.string()).readonly());
const people = z.optional(z.object({ names, roles: names }));
const storedSecurity = z.object({ admins: people, members: people });

/** A database that has to be there. */
export function databaseStep(couch: Couch, database: string): Step {
  const path = `/${pathPart(database)}`;
  return {
    title: `database ${database}`,
    look: async () => {
      const { status } = await couch.send('GET', path, { accept: [404] });
      return { state: status === 404 ? 'missing' : 'so' };
    },
    // 412: another run made it a moment ago.
    make: async () => void (await couch.send('PUT', path, { accept: [412] })),
  };
}

/** The object that says who may use a database. What a new database has (admins alone) counts as none. */
export function securityStep(
  couch: Couch,
  database: string,
  wanted: Pick<Security, 'members'>,
  { keepOther = false }: { readonly keepOther?: boolean } = {},
): Step {
  const path = `/${pathPart(database)}/_security`;
  const security: Security = { admins: { names: [], roles: ['_admin'] }, members: wanted.members };
  return {
    title: `rights of ${database}`,
    look: async (): Promise<Finding> => {
      const { status, body } = await couch.send('GET', path, { accept: [404] });
      if (status === 404) return { state: 'missing' };
      const stored = storedSecurity.safeParse(body);
      const is = stored.success ? inWords(stored.data) : 'something of another shape';
      if (is === inWords(security)) return { state: 'so' };
      if (is === inWords({}) || is === inWords(asNew)) return { state: 'missing' };
      return keepOther ? { state: 'so' } : { state: 'differs', is, wanted: inWords(security) };
    },
    make: async () => void (await couch.send('PUT', path, { body: security })),
  };
}

const asNew: z.infer<typeof storedSecurity> = { admins: { roles: ['_admin'] }, members: { roles: ['_admin'] } };

/** The same people are always the same words, whatever their order. */
function inWords({ admins, members }: z.infer<typeof storedSecurity>): string {
  const section = (label: string, part: typeof admins): string => {
    const list = (names: readonly string[] | undefined): string => [...(names ?? [])].sort().join(', ');
    return `${label} names [${list(part?.names)}] roles [${list(part?.roles)}]`;
  };
  return `${section('admins', admins)}, ${section('members', members)}`;
}
