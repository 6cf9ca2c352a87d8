/* What both commands need: steps that say what they do, child processes that end with us, and one clear line at the end. */
import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** A step that failed; the message is the one line that a person reads. */
export class StepError extends Error {}

/** Progress goes to stderr: stdout belongs to results. */
export function say(line) {
  process.stderr.write(`» ${line}\n`);
}

const children = new Set();
const endings = [];

/** What is tidied up when someone stops us. */
export function atEnd(tidyUp) {
  endings.push(tidyUp);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    for (const child of children) child.kill('SIGTERM');
    const code = signal === 'SIGINT' ? 130 : 143;
    setTimeout(() => process.exit(code), 5000).unref();
    Promise.allSettled(endings.map((tidyUp) => tidyUp())).then(() => process.exit(code));
  });
}

/**
 * Runs a command in the workspace and answers its exit code. Its output goes to our stderr unless `quiet`: then it is
 * shown only when it failed, and not even then when `silent`. After `timeoutMs` it is killed, which is a failure.
 */
export function run([command, ...args], { quiet = false, silent = false, timeoutMs, env = {}, cwd = root } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: childEnvironment(env),
      stdio: ['ignore', ...Array(2).fill(silent ? 'ignore' : quiet ? 'pipe' : 2)],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    children.add(child);
    const output = [];
    child.stdout?.on('data', (chunk) => output.push(chunk));
    child.stderr?.on('data', (chunk) => output.push(chunk));
    const end = (code) => {
      children.delete(child);
      if (code !== 0) process.stderr.write(Buffer.concat(output));
      resolve(code);
    };
    child.on('error', (error) => {
      output.push(Buffer.from(`${error.message}\n`));
      end(127);
    });
    child.on('close', (code) => end(code ?? 1));
  });
}

/** Runs a command that must work. */
export async function must(command, failure, options) {
  const code = await run(command, options);
  if (code !== 0) throw new StepError(`${failure} (exit code ${code}).`);
}

/** What a command prints, or undefined when it is not there or fails. */
export function answerOf([command, ...args]) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, encoding: 'utf8', timeout: 60_000 });
  return status === 0 ? stdout.trim() : undefined;
}

function childEnvironment(env) {
  const guard = `--import=${new URL('./end-with-parent.mjs', import.meta.url).href}`;
  const options = process.env.NODE_OPTIONS ? `${process.env.NODE_OPTIONS} ${guard}` : guard;
  return { ...process.env, NODE_OPTIONS: options, ...env };
}

/** Ends the process with one clear line when `main` throws. */
export async function command(main) {
  try {
    process.exitCode = await main();
  } catch (error) {
    const [line] = String(error?.message ?? error).split('\n');
    process.stderr.write(`✖ ${line}\n`);
    if (process.env.AFIELD_DEBUG) process.stderr.write(`${error?.stack}\n`);
    else if (!(error instanceof StepError)) process.stderr.write('  (AFIELD_DEBUG=1 shows where.)\n');
    process.exitCode = 1;
  }
}
