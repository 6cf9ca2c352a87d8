import { Arguments } from '../arguments.js';
import { exitCodes, type Command, type World } from '../command.js';
import type { Couch } from '../couch.js';
import { ServerCommandError } from '../errors.js';
import { checkedOrigin } from '../setup/cors.js';
import { setupSteps } from '../setup/plan.js';
import { runSteps, type StepReport } from '../setup/step.js';
import { signIn } from './sign-in.js';

const help = `afield-server setup --url URL [options]: makes what Afield needs in a CouchDB

  --url URL           address of CouchDB, such as http://127.0.0.1:5984; no name or password in it
  --layout LAYOUT     shared (default): one database for all devices: ids, codes and names of fields only;
                      per-user: databases of each --user, where the content of failures is allowed
  --results NAME      database of results (default afield-results); per-user: what the names begin with
  --events NAME       database of events (default afield-events); per-user: what the names begin with
  --app-db NAME       a database of your app, to be made and opened to devices; may be given more than once
  --user NAME         whose databases are made (per-user); may be given more than once
  --origin ORIGIN     where your app's pages come from, such as https://app.example; may be given more than once
  --wait SECONDS      wait so long for CouchDB to answer, for a CouchDB that is just being started
  --dry-run           say what would be done, and do nothing
  --force             replace what somebody has made otherwise

It can be run again at any time: what is there stays, and a run that was stopped is simply repeated.
Exit codes: 0 fine; 1 it could not be done; 2 wrong arguments; 3 something that differs was kept.
`;

const options = {
  url: { type: 'string' },
  layout: { type: 'string' },
  results: { type: 'string' },
  events: { type: 'string' },
  'app-db': { type: 'string', multiple: true },
  user: { type: 'string', multiple: true },
  origin: { type: 'string', multiple: true },
  wait: { type: 'string' },
  'dry-run': { type: 'boolean' },
  force: { type: 'boolean' },
} as const;

const pauseMs = 500;

/** `afield-server setup` */
export const setupCommand: Command = {
  name: 'setup',
  summary: 'makes databases, rights, validation, indexes and CORS settings',
  help,
  run: async (given, world) => {
    const values = new Arguments(given, options);
    const wishes = {
      layout: values.oneOf('layout', ['shared', 'per-user'], 'shared'),
      results: values.text('results') ?? 'afield-results',
      events: values.text('events') ?? 'afield-events',
      appDatabases: values.texts('app-db'),
      users: values.texts('user'),
      origins: values.texts('origin').map(checkedOrigin),
    };
    const waitS = Number(values.text('wait') ?? '0');
    if (!(waitS >= 0)) throw new ServerCommandError('usage', '--wait takes a number of seconds.');
    const { couch, roles } = await signIn(values, world, (server) => untilThere(server, waitS * 1000, world));
    if (!roles.includes('_admin')) {
      throw new ServerCommandError('forbidden', 'Only an admin of the server can set it up. Sign in as one.');
    }
    const mode = { force: values.isSet('force'), dryRun: values.isSet('dry-run') };
    let kept = 0;
    for await (const report of runSteps(await setupSteps(couch, wishes), mode)) {
      if (report.outcome === 'kept') kept++;
      await world.out(`${lineOf(report)}\n`);
    }
    if (kept > 0) world.say(`${String(kept)} made otherwise by somebody, and kept. --force replaces them.`);
    return kept > 0 ? exitCodes.kept : exitCodes.fine;
  },
};

function lineOf({ title, outcome, note }: StepReport): string {
  return `${outcome.padEnd(18)}${title}${note === undefined ? '' : ` (${note})`}`;
}

/** Waits for a server that is being started: until it answers, whatever it says. */
async function untilThere(couch: Couch, mostMs: number, world: World): Promise<void> {
  const end = world.now() + mostMs;
  while (world.now() < end) {
    try {
      return void (await couch.greet());
    } catch (error) {
      const isStarting = error instanceof ServerCommandError && ['unreachable', 'server'].includes(error.code);
      if (!isStarting) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
