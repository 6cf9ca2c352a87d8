/* Ends this process when the one that it works for is gone. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const lookEveryMs = 500;
const shells = new Set(['sh', 'bash', 'dash', 'ash', 'busybox', 'zsh', 'ksh']);

export function endWithParent() {
  const parent = process.ppid;
  endUnless(() => process.ppid === parent);
}

/** For a script of npm's: ends when npm ends. Between npm and the script may stand a shell that outlives a killed npm. */
export function endWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  endWithParent();
  const shell = process.ppid;
  const { name, parent: npm } = lookUp(shell) ?? {};
  if (!shells.has(name) || npm <= 1) return;
  endUnless(() => (fromProc(shell)?.parent ?? npm) === npm && isAlive(npm));
}

function endUnless(isSo) {
  setInterval(() => {
    if (!isSo()) process.exit(1);
  }, lookEveryMs).unref();
}

function lookUp(pid) {
  const found = fromProc(pid);
  if (found) return found;
  const { status, stdout } = spawnSync('ps', ['-o', 'ppid=,comm=', '-p', String(pid)], { encoding: 'utf8' });
  const [, parent, path] = /^\s*(\d+)\s+(\S+)/.exec(status === 0 ? stdout : '') ?? [];
  return parent === undefined ? undefined : { name: path.replace(/^.*[/-]/, ''), parent: Number(parent) };
}

/** Where there is a /proc: `pid (name) state parent …`. */
function fromProc(pid) {
  try {
    const [, name, parent] = /^\d+ \((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return parent === undefined ? undefined : { name, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
