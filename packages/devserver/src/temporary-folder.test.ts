import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from './temporary-folder.js';

it('removes folders whose process is gone, and no others', async () => {
  const name = 'afield-folder-test';
  const { pid } = spawnSync(process.execPath, ['--version']);
  const leftOver = join(tmpdir(), `${name}-${String(pid)}-abcdef`);
  const ofOthers = join(tmpdir(), `${name}-mine-${String(pid)}-abcdef`);
  mkdirSync(leftOver);
  mkdirSync(ofOthers);
  const first = await temporaryFolder(name);
  const second = await temporaryFolder(name);
  expect([leftOver, ofOthers, first.folder, second.folder].map((folder) => existsSync(folder))).toEqual([
    false,
    true,
    true,
    true,
  ]);
  await first.remove();
  await second.remove();
  expect(existsSync(first.folder)).toBe(false);
  rmSync(ofOthers, { recursive: true });
});
