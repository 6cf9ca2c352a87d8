import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const prefix = 'afield-browser-';

/** A folder for a browser's profile, and removal of those whose process was killed before it could. */
export async function temporaryProfile(): Promise<{ folder: string; remove: () => Promise<void> }> {
  for (const name of await readdir(tmpdir())) {
    const owner = Number(/^afield-browser-(\d+)-/.exec(name)?.[1] ?? Number.NaN);
    if (Number.isInteger(owner) && !isAlive(owner)) await remove(join(tmpdir(), name));
  }
  const folder = await mkdtemp(join(tmpdir(), `${prefix}${String(process.pid)}-`));
  return { folder, remove: () => remove(folder) };
}

function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
