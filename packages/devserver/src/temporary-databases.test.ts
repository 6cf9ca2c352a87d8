import { afterAll, beforeAll, expect, it } from 'vitest';
import { send } from './fixtures/client.js';
import { serverUnderTest, type ServerUnderTest } from './server-under-test.js';
import { temporaryDatabases } from './temporary-databases.js';

let server: ServerUnderTest;

beforeAll(async () => {
  server = await serverUnderTest();
});

afterAll(() => server.close());

it('makes databases and users that nobody else has and removes them', async () => {
  const databases = temporaryDatabases(server.directUrl, server.admin);
  const [first, second] = [await databases.create('main'), await databases.create('main')];
  const user = await databases.createUser({ roles: ['chw'] });
  expect(first.name).not.toBe(second.name);
  expect((await send('GET', `${server.directUrl}/_session`, { as: user })).body).toMatchObject({
    userCtx: { name: user.username, roles: ['chw'] },
  });
  await send('DELETE', second.url, { as: server.admin });
  await databases.dispose();
  await databases.dispose();
  expect((await send('GET', first.url, { as: server.admin })).status).toBe(404);
  expect((await send('GET', `${server.directUrl}/_session`, { as: user })).status).toBe(401);
});

it('opens a database to everyone and fills it when asked to', async () => {
  const databases = temporaryDatabases(server.directUrl, server.admin);
  const { url } = await databases.create('open', { security: 'everyone', docs: [{ _id: 'a' }] });
  expect((await send('GET', `${url}/a`)).status).toBe(200);
  await databases.dispose();
});

it('says what the server answered, without the credentials', async () => {
  const wrong = { username: 'admin', password: 'not-the-password' };
  const databases = temporaryDatabases(server.directUrl.replace('//', '//admin:not-the-password@'), wrong);
  const failed = databases.create();
  await expect(failed).rejects.toMatchObject({
    code: 'request_failed',
    message: expect.stringMatching(/ 401: /) as string,
  });
  await expect(failed).rejects.not.toMatchObject({ message: expect.stringContaining('not-the-password') as string });
});
