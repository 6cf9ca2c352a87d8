import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startDevServer, type DevServer } from '@afield/devserver';
import { databaseOfUser } from '@afield/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examplesOf, type Examples } from './examples.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const inReadme = 'http://127.0.0.1:5984';
/** What the commands need of this process, and no credentials of it. */
const { PATH, HOME } = process.env;

describe('the section "At the server" of the README', () => {
  let server: DevServer;
  let folder: string;
  let section: string;

  beforeAll(async () => {
    server = await startDevServer({ admin: { username: 'admin', password: 'secret' } });
    folder = await mkdtemp(join(root, 'test', 'readme-'));
    const readme = await readFile(join(root, 'README.md'), 'utf8');
    section = /\n## At the server\n[\s\S]*?(?=\n## )/.exec(readme)?.[0].replaceAll(inReadme, server.url) ?? '';
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await server.close();
  });

  const blocks = (language: string): string[] =>
    [...section.matchAll(new RegExp('```' + language + '\\n([\\s\\S]*?)```', 'g'))].map(([, block]) => block ?? '');

  /** Runs a line as a shell would, with the command and without what npm does around it. */
  async function runLine(line: string, credentials: { user: string; password: string }): Promise<string> {
    const [, user, password, rest] =
      /^(?:COUCHDB_USER=(\S+) COUCHDB_PASSWORD=(\S+) )?npm run --silent afield-server -- (.*)$/.exec(line) ?? [];
    const bin = join(root, 'packages', 'server', 'bin', 'afield-server.js');
    const env = {
      PATH,
      HOME,
      COUCHDB_USER: user ?? credentials.user,
      COUCHDB_PASSWORD: password ?? credentials.password,
    };
    const { stdout } = await promisify(execFile)(process.execPath, [bin, ...(rest ?? '').split(' ')], { env });
    return stdout;
  }

  /** Does what a line with curl does, on machines without curl. */
  async function curl(line: string): Promise<number> {
    const [, url = '', body = ''] =
      /^curl -su "\S+" -X PUT (\S+) -H content-type:application\/json -d '(.*)'$/.exec(line) ?? [];
    const authorization = `Basic ${Buffer.from('admin:secret').toString('base64')}`;
    const headers = { authorization, 'content-type': 'application/json' };
    return (await fetch(url, { method: 'PUT', headers, body })).status;
  }

  it('S1 goes as it stands from a bare server to a failure that a supervisor sees', async () => {
    const [admin = '', setup = '', accounts = '', device = '', looking = ''] = blocks('sh');
    expect(admin).toContain('COUCHDB_PASSWORD');
    const as = { user: 'admin', password: 'secret' };
    expect(await runLine(setup.trim(), as)).toMatch(/^made +database afield-results$/m);
    for (const line of accounts.trim().split('\n')) expect(await curl(line)).toBe(201);

    expect(device).toContain('node test/device.mjs');
    const script = join(folder, 'device.mjs');
    await writeFile(script, blocks('ts')[0] ?? '');
    const { stdout } = await promisify(execFile)(process.execPath, [script], { env: { PATH, HOME }, timeout: 50_000 });
    const store = /^failed, and reported, by the device (\S+)$/m.exec(stdout)?.[1];

    const [failures = '', devices = ''] = looking.trim().split('\n');
    const list = (await runLine(failures, as)).trim().split('\n');
    expect(list).toHaveLength(1);
    expect(JSON.parse(list[0] ?? '')).toMatchObject({ store, user: 'ann', id: 'nobody', code: 'missing' });
    expect(list[0]).toMatch(/"user":"ann".*"id":"nobody".*"code":"missing"/);
    expect(await runLine(devices, as)).toBe('');
    const heardOf = await runLine(devices.replace(/ --silent-for \S+/, ''), as);
    expect(JSON.parse(heardOf)).toMatchObject({ store, user: 'ann', pending: 0, failed: 1 });
  }, 60_000);
});

describe('the example of docs/server.md', () => {
  let examples: Examples;
  beforeAll(async () => {
    examples = await examplesOf('docs/server.md');
  });
  afterAll(() => examples.remove());

  it('compiles in strict mode, and names the database that setup makes', async () => {
    expect(await examples.compile()).toBe('');
    const { resultsOf } = (await import(/* @vite-ignore */ examples.files[0] ?? '')) as {
      resultsOf(server: string, user: string): string;
    };
    for (const user of ['ann', 'Ünal', '😀']) {
      expect(resultsOf('http://a', user)).toBe(`http://a/${databaseOfUser('afield-results', user)}`);
    }
  }, 60_000);
});
