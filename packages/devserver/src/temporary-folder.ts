import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of this process. */
export interface TemporaryFolder {
  readonly folder: string;
  remove(): Promise<void>;
}

/**
 * Makes a temporary folder, and removes those of the same name whose process was killed before it could.
 * @param name letters and dashes, such as `afield-devserver`
 */
export async function temporaryFolder(name: string): Promise<TemporaryFolder> {
  await removeLeftOver(name);
  const folder = await mkdtemp(join(tmpdir(), `${name}-${String(process.pid)}-`));
  return { folder, remove: () => remove(folder) };
}

async function removeLeftOver(name: string): Promise<void> {
  const owned = new RegExp(`^${name}-(\\d+)-[^-]+$`);
  for (const found of await readdir(tmpdir())) {
    const owner = owned.exec(found)?.[1];
    if (owner === undefined || isAlive(Number(owner))) continue;
    // Another process may be removing it too, or it is another person's: neither is in our way.
    await remove(join(tmpdir(), found)).catch(() => undefined);
  }
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
