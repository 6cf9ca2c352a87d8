import { z } from 'zod';
import { parsed, pathPart, type Couch } from '../couch.js';
import { ServerCommandError } from '../errors.js';
import type { Finding, Step } from './step.js';

/** What CouchDB allows or shows by itself as long as nobody names a list (chttpd_cors). */
const ownLists = {
  exposed_headers: [
    'accept-ranges',
    'etag',
    'server',
    'x-couch-request-id',
    'x-couch-update-newrev',
    'x-couchdb-body-time',
  ],
};

/** What a page with Afield sends, and must be able to see: when to come again, and what time the server has (R13). */
const needed = {
  headers: ['accept', 'authorization', 'content-type', 'if-match', 'origin'],
  methods: ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'],
  exposed_headers: ['date', 'retry-after'],
};

/** One setting: what it has to be, judged by what it is now (undefined: nobody has set it). */
interface Setting {
  readonly section: string;
  readonly key: string;
  wanted(present: string | undefined, section: Readonly<Record<string, string>>): Decision;
}

/** `set`: to be written; `instead`: a person has decided otherwise, so it is written only by force. */
type Decision = { readonly set: string } | { readonly instead: string } | 'so';

const section = z.record(z.string(), z.string());
const membership = z.object({ cluster_nodes: z.array(z.string()) });

/**
 * What lets pages of other origins use the server. Settings belong to a node: each node of a cluster gets them. Entries are
 * added to a list that a person made, and none is taken away; a switch that a person has set is shown and kept.
 *
 * @param origins such as `https://app.example`; see {@link checkedOrigin}
 */
export async function corsSteps(couch: Couch, origins: readonly string[]): Promise<Step[]> {
  if (origins.length === 0) return [];
  const { status, body } = await couch.send('GET', '/_membership', { accept: [404] });
  const nodes = status === 404 ? ['_local'] : parsed(membership, body).cluster_nodes;
  return nodes.flatMap((node) => settings(origins).map((setting) => settingStep(couch, node, setting)));
}

/** An origin as a browser sends it. @throws ServerCommandError with code `usage` when it is none */
export function checkedOrigin(text: string): string {
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin =
    parsed !== undefined &&
    /^https?:$/.test(parsed.protocol) &&
    parsed.username === '' &&
    parsed.password === '' &&
    /^\/?$/.test(parsed.pathname + parsed.search + parsed.hash);
  if (!isOrigin) {
    throw new ServerCommandError(
      'usage',
      '--origin takes the address of an app without a path, such as https://app.example. "*" is refused: every page of the web could then act for whoever is signed in.',
    );
  }
  return parsed.origin;
}

/** CouchDB answers pages once all is there: the switch comes last. */
function settings(origins: readonly string[]): Setting[] {
  const any = '*';
  return [
    {
      section: 'cors',
      key: 'origins',
      wanted: (present) => {
        const list = listOf(present);
        if (list.includes(any)) return { instead: origins.join(', ') };
        return added(list, origins);
      },
    },
    {
      section: 'cors',
      key: 'credentials',
      // With every origin allowed, any page of the web could act for whoever is signed in.
      wanted: (present, { origins: allowed }) => {
        const decision = switchedOn(present);
        return decision !== 'so' && listOf(allowed).includes(any) ? { instead: 'true' } : decision;
      },
    },
    // Where nobody has named a list, CouchDB's own one has all of these.
    ...(['headers', 'methods'] as const).map((key) => ({
      section: 'cors',
      key,
      wanted: (present: string | undefined): Decision =>
        present === undefined || present === '' ? 'so' : added(listOf(present), needed[key]),
    })),
    {
      section: 'cors',
      key: 'exposed_headers',
      wanted: (present) =>
        added(present === undefined ? ownLists.exposed_headers : listOf(present), needed.exposed_headers),
    },
    { section: 'chttpd', key: 'enable_cors', wanted: switchedOn },
  ];
}

function switchedOn(present: string | undefined): Decision {
  if (present === 'true') return 'so';
  return present === undefined || present === '' ? { set: 'true' } : { instead: 'true' };
}

function listOf(text: string | undefined): string[] {
  return (text ?? '').split(/\s*,\s*/).filter((entry) => entry !== '');
}

function added(list: readonly string[], wanted: readonly string[]): Decision {
  const there = list.map((entry) => entry.toLowerCase());
  const lacking = wanted.filter((entry) => !there.includes(entry.toLowerCase()));
  return lacking.length === 0 ? 'so' : { set: [...list, ...lacking].join(', ') };
}

function settingStep(couch: Couch, node: string, setting: Setting): Step {
  const path = `/_node/${pathPart(node)}/_config/${setting.section}`;
  const present = async (): Promise<Readonly<Record<string, string>> | undefined> => {
    const { status, body } = await couch.send('GET', path, { accept: [404] });
    if (status === 404) return undefined;
    const values = section.safeParse(body);
    return values.success ? values.data : undefined;
  };
  return {
    title: `setting ${setting.section}/${setting.key} of ${node}`,
    look: async (): Promise<Finding> => {
      const found = await present();
      if (found === undefined) {
        return { state: 'unsupported', why: 'this server has no settings over HTTP; set CORS where it is started' };
      }
      const value = found[setting.key];
      const decision = setting.wanted(value, found);
      if (decision === 'so') return { state: 'so' };
      return 'set' in decision
        ? { state: 'missing', will: decision.set }
        : { state: 'differs', is: value ?? 'not set', wanted: decision.instead };
    },
    make: async () => {
      const found = (await present()) ?? {};
      const decision = setting.wanted(found[setting.key], found);
      if (decision === 'so') return;
      const value = 'set' in decision ? decision.set : decision.instead;
      await couch.send('PUT', `${path}/${setting.key}`, { body: value });
    },
  };
}
