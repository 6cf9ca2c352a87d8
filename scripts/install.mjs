/* Installs what is missing, from nothing but Node and npm. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerOf, must, root, say, StepError } from './run.mjs';

const pnpmVersion = '10.34.9';
const stamp = join(root, 'node_modules', '.afield-installed');

let pnpmFound;
/** The command that runs pnpm: the one that is there if it fits, else one that npm brings for the moment. */
export function pnpm() {
  if (pnpmFound) return pnpmFound;
  const fits = answerOf(['pnpm', '--version']) === pnpmVersion;
  pnpmFound = fits ? ['pnpm'] : ['npm', 'exec', '--yes', `--package=pnpm@${pnpmVersion}`, '--', 'pnpm'];
  return pnpmFound;
}

export async function installPackages() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new StepError(`Node ${process.versions.node} is too old: Afield needs 20.19 or newer.`);
  }
  const wanted = fingerprint();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted && everyPackageIsThere()) {
    say('Packages are installed.');
    return;
  }
  say(`Installing packages with pnpm ${pnpmVersion} …`);
  const install = [...pnpm(), 'install', '--frozen-lockfile', '--reporter=append-only'];
  await must(install, 'Installing the packages failed; is the network there?', { env: { CI: 'true' } });
  writeFileSync(stamp, wanted);
}

/** Changes with the lock file, with any manifest, with the place of the workspace and with Node. */
function fingerprint() {
  const hash = createHash('sha256').update(`${root} ${process.version} ${process.platform} ${process.arch}`);
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', ...manifests()]) {
    hash.update(readFileSync(join(root, file)));
  }
  return hash.digest('hex');
}

function manifests() {
  return workspaceFolders().map((folder) => join(folder, 'package.json'));
}

function everyPackageIsThere() {
  return workspaceFolders().every((folder) => {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(
      readFileSync(join(root, folder, 'package.json'), 'utf8'),
    );
    const names = Object.keys({ ...dependencies, ...devDependencies });
    return names.every((name) => existsSync(join(root, folder, 'node_modules', name)));
  });
}

/** All folders of the workspace that have a manifest. */
export function workspaceFolders() {
  const packages = readdirSync(join(root, 'packages')).map((name) => join('packages', name));
  return ['.', ...packages, 'demo-app', 'test', 'test/bench', 'test/fleet', 'e2e'].filter((folder) =>
    existsSync(join(root, folder, 'package.json')),
  );
}
