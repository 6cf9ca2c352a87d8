import { expect, it } from 'vitest';
import { send } from './fixtures/client.js';
import { startDevServer } from './server/dev-server.js';
import { serverUnderTest } from './server-under-test.js';

it('starts a server of its own when no other is named', async () => {
  const server = await serverUnderTest({});
  expect(server.isEmbedded).toBe(true);
  expect((await send('GET', `${server.url}/_session`, { as: server.admin })).body).toMatchObject({
    userCtx: { roles: ['_admin'] },
  });
  await server.close();
});

it('stands in front of the server that COUCHDB_URL names and leaves it running', async () => {
  const given = await startDevServer({ admin: { username: 'chief', password: 'p@ss' } });
  const server = await serverUnderTest({ COUCHDB_URL: given.url.replace('//', '//chief:p%40ss@') });
  expect(server).toMatchObject({
    isEmbedded: false,
    directUrl: given.url,
    admin: { username: 'chief', password: 'p@ss' },
  });
  expect((await send('GET', `${server.url}/_all_dbs`, { as: server.admin })).status).toBe(200);
  await server.close();
  expect((await send('GET', `${given.url}/_up`)).status).toBe(200);
  await given.close();
});

it('says that COUCHDB_URL needs credentials, or is no address, without showing it', async () => {
  await expect(serverUnderTest({ COUCHDB_URL: 'http://127.0.0.1:1' })).rejects.toMatchObject({
    code: 'invalid_argument',
  });
  const failed = serverUnderTest({ COUCHDB_URL: 'user:hidden@host' });
  await expect(failed).rejects.toMatchObject({ code: 'invalid_argument' });
  await expect(failed).rejects.not.toMatchObject({ message: expect.stringContaining('hidden') as string });
});
