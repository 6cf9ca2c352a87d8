import { expect, it } from 'vitest';
import { startCommand } from './cli.js';
import { networkError, send } from './fixtures/client.js';
import { startDevServer } from './server/dev-server.js';

it('starts a server with a proxy in front and names the addresses', async () => {
  const command = await startCommand(['--port', '0', '--control-port', '0']);
  const [app = '', faults = ''] = command.lines.map((line) => /http:\S+/.exec(line)?.[0] ?? '');
  expect((await send('GET', `${app}/`)).body).toMatchObject({ couchdb: 'Welcome' });
  expect((await send('GET', faults)).body).toEqual({ outage: false, rules: [] });
  await command.close();
  expect(await networkError(send('GET', app))).toBe('ECONNREFUSED');
});

it('makes the databases that are asked for, and says how to sign in', async () => {
  const command = await startCommand(['--port=0', '--control-port=0', '--database', 'records', '--database=a+b']);
  const addresses = command.lines
    .filter((line) => line.startsWith('Database'))
    .map((line) => line.split(/\s+/)[1] ?? '');
  expect(command.lines.join()).toContain('admin / secret');
  const headers = { authorization: `Basic ${btoa('admin:secret')}` };
  for (const [place, name] of ['records', 'a+b'].entries()) {
    const answer = await fetch(addresses[place] ?? '', { headers });
    expect(await answer.json()).toMatchObject({ db_name: name });
  }
  await command.close();
});

it('stands in front of another server and never prints its password', async () => {
  const upstream = await startDevServer();
  const address = upstream.url.replace('//', '//name:hidden@');
  const command = await startCommand(['--port', '0', '--control-port', '0', '--upstream', address]);
  expect(command.lines.join()).toContain(upstream.url);
  expect(command.lines.join()).not.toContain('hidden');
  await command.close();
  await upstream.close();
});

it.each([
  [['--port', 'many']],
  [['--port', '70000']],
  [['--unknown']],
  [['--upstream', 'nowhere']],
  [['--database', 'Not/allowed']],
  [['--database', 'a', '--upstream', 'http://127.0.0.1:1']],
])('refuses %j', async (given) => {
  await expect(startCommand([...given, '--control-port=0'])).rejects.toMatchObject({ code: 'invalid_argument' });
});
