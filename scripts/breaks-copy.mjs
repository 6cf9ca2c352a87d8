/* A copy of the sources that may be broken: the working tree as it is, with the installed packages linked. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { workspaceFolders } from './install.mjs';
import { root } from './run.mjs';

/** Copies what git tracks or would track. Answers the copy's folder, and what removes it. */
export function copySources() {
  const folder = mkdtempSync(join(tmpdir(), 'afield-breaks-'));
  for (const file of listed()) {
    if (!existsSync(join(root, file))) continue; // removed, not committed yet
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file));
  }
  for (const workspace of workspaceFolders()) {
    const modules = join(workspace, 'node_modules');
    if (existsSync(join(root, modules)) && existsSync(join(folder, workspace))) {
      symlinkSync(join(root, modules), join(folder, modules));
    }
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function listed() {
  const options = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const names = execFileSync('git', options, { cwd: root, encoding: 'utf8' });
  return names.split('\0').filter((name) => name !== '');
}
