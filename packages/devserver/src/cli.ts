import { parseArgs } from 'node:util';
import { DevServerError } from './errors.js';
import { startFaultProxy } from './proxy/fault-proxy.js';
import { startDevServer, type DevServer } from './server/dev-server.js';

const usage = `afield-devserver: a CouchDB-compatible server in memory, with a fault proxy in front

  --port N           port of the proxy, which apps talk to (default 5984)
  --control-port N   port of the control API for faults (default 5985)
  --database NAME    a database to make in the server in memory; may be given more than once
  --upstream URL     a CouchDB to stand in front of, instead of the server in memory
  --help             this text

The admin of the server in memory is named in the package's README.
All ports are on 127.0.0.1; 0 takes a free one. Ctrl-C ends it.
`;

const defaultPort = '5984';
const defaultControlPort = '5985';
const highestPort = 65_535;

/** What is started from the command line, with the lines to show. */
export interface RunningCommand {
  readonly lines: readonly string[];
  close(): Promise<void>;
}

/**
 * Starts what the arguments ask for, prints the addresses and ends on SIGINT or SIGTERM.
 * Answers what runs. A wrong argument is printed with the usage and sets the exit code 2; a port that is taken sets 1.
 */
export async function runCommandLine(given: readonly string[]): Promise<RunningCommand | undefined> {
  try {
    const command = await startCommand(given);
    for (const line of command.lines) console.log(line);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void command.close());
    return command;
  } catch (error) {
    if (!(error instanceof DevServerError)) throw error;
    const isUsage = error.code === 'invalid_argument';
    console.error(isUsage ? `${error.message}\n\n${usage}` : error.message);
    process.exitCode = isUsage ? 2 : 1;
    return undefined;
  }
}

/** Starts the server and the proxy. @throws DevServerError with code `invalid_argument` or `start_failed` */
export async function startCommand(given: readonly string[]): Promise<RunningCommand> {
  const values = parsedArguments(given);
  if (values.help === true) return { lines: [usage.trimEnd()], close: () => Promise.resolve() };
  const port = portNumber('--port', values.port ?? defaultPort);
  const controlPort = portNumber('--control-port', values['control-port'] ?? defaultControlPort);
  const databases = values.database ?? [];
  if (databases.length > 0 && values.upstream !== undefined) {
    throw new DevServerError(
      'invalid_argument',
      '--database is for the server in memory: it does not go with --upstream.',
    );
  }
  const server = values.upstream === undefined ? await startDevServer() : undefined;
  if (server !== undefined) await makeDatabases(server, databases);
  const upstream = server?.url ?? values.upstream ?? '';
  const proxy = await startFaultProxy({ upstream, port, controlPort }).catch(async (error: unknown) => {
    await server?.close();
    throw error;
  });
  return {
    lines: [
      `CouchDB for apps   ${proxy.url}`,
      `Faults             ${proxy.controlUrl}/__faults`,
      `Server behind      ${proxy.upstreamUrl}${server === undefined ? '' : ' (in memory)'}`,
      ...databases.map((name) => `Database           ${proxy.url}/${encodeURIComponent(name)}`),
      ...(server === undefined ? [] : ['Sign in            admin / secret (for development only)']),
    ],
    close: async () => {
      await proxy.close();
      await server?.close();
    },
  };
}

/** Makes the databases; closes the server when one cannot be made. */
async function makeDatabases(server: DevServer, names: readonly string[]): Promise<void> {
  const { username, password } = server.admin;
  const headers = { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
  for (const name of names) {
    const answer = await fetch(`${server.url}/${encodeURIComponent(name)}`, { method: 'PUT', headers });
    if (answer.status === 201 || answer.status === 412) continue;
    await server.close();
    throw new DevServerError('invalid_argument', `--database ${name}: this is not a name that CouchDB allows.`);
  }
}

function parsedArguments(given: readonly string[]): {
  port?: string | undefined;
  'control-port'?: string | undefined;
  upstream?: string | undefined;
  database?: string[] | undefined;
  help?: boolean | undefined;
} {
  try {
    return parseArgs({
      args: [...given],
      options: {
        port: { type: 'string' },
        'control-port': { type: 'string' },
        upstream: { type: 'string' },
        database: { type: 'string', multiple: true },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new DevServerError('invalid_argument', error instanceof Error ? error.message : String(error));
  }
}

function portNumber(name: string, text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= highestPort) return port;
  throw new DevServerError('invalid_argument', `${name} must be a number from 0 to ${String(highestPort)}.`);
}
