import { devicesCommand } from './commands/devices.js';
import { failuresCommand } from './commands/failures.js';
import { setupCommand } from './commands/setup.js';
import { exitCodes, type Command, type World } from './command.js';
import { terminalAsk } from './credentials.js';
import { ServerCommandError } from './errors.js';

const commands: readonly Command[] = [setupCommand, failuresCommand, devicesCommand];

const usage = `afield-server: prepares a CouchDB for Afield, and lists what failed across the devices

${commands.map(({ name, summary }) => `  ${name.padEnd(10)}${summary}`).join('\n')}

  afield-server COMMAND --help says more.

Who signs in: COUCHDB_USER and COUCHDB_PASSWORD in the environment; in a terminal what is missing is asked for.
Exit codes: 0 fine; 1 it could not be done; 2 wrong arguments; 3 done, but what a person had made otherwise was kept.
`;

/** Runs what the arguments ask for. Answers the exit code; throws only for bugs. */
export async function runCommandLine(given: readonly string[], world: World = thisProcess()): Promise<number> {
  const [name, ...rest] = given;
  const command = commands.find((one) => one.name === name);
  if (command === undefined) {
    const isHelp = name === '--help' || name === 'help';
    if (isHelp) await world.out(usage);
    else world.say(name === undefined ? usage : `There is no such command.\n\n${usage}`);
    return isHelp ? exitCodes.fine : exitCodes.usage;
  }
  if (rest.includes('--help')) {
    await world.out(command.help);
    return exitCodes.fine;
  }
  try {
    return await command.run(rest, world);
  } catch (error) {
    if (!(error instanceof ServerCommandError)) throw error;
    const isUsage = error.code === 'usage';
    world.say(isUsage ? `${error.message}\nafield-server ${command.name} --help says more.` : error.message);
    return isUsage ? exitCodes.usage : exitCodes.failed;
  }
}

function thisProcess(): World {
  // Whoever reads may have seen enough (`| head`): that is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  return {
    environment: process.env,
    ask: terminalAsk(),
    fetch,
    out: (text) => new Promise((resolve) => void process.stdout.write(text, () => resolve())),
    say: (line) => void process.stderr.write(`${line}\n`),
    now: Date.now,
  };
}
