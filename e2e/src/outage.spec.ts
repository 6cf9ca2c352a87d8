import { allDocuments } from '@afield/demo-app/host';
import { expect, test } from './demo.js';

test('a move made during an outage waits, outlives a reload, and reaches the server with its result', async ({
  afield,
}) => {
  await afield.importSample();
  await afield.setOutage(true);
  await afield.choose('District North District', 'Health centre Riverside Health Centre', 'Clinic Mill Lane Clinic');
  await afield.moveChosenTo('Harbour Health Centre');

  await expect(afield.bulkOperations).toHaveCount(1);
  await expect(afield.bulkOperations).toContainText('Done on this device, not yet at the server');
  await expect(afield.push).toContainText('It will be tried again');
  await expect(afield.push).toContainText('The server can’t be reached');
  await expect(afield.push.locator('.attempt')).toHaveText('Tried 2 times.');
  await expect(afield.push.locator('.next')).toHaveText(/Next try in \d:\d\d/);

  await afield.page.reload();
  await afield.tab('Queue');
  await expect(afield.bulkOperations).toHaveCount(1);
  await expect(afield.bulkOperations).toContainText('not yet at the server');
  await expect(afield.push.locator('.next')).toHaveText(/Next try in \d:\d\d/);
  expect((await afield.onServer('place:mill'))['parent']).toMatchObject({ _id: 'place:riverside' });

  await afield.setOutage(false);
  await afield.isAtServer();
  const server = await allDocuments(afield.demo.couch, afield.demo.names.app);
  const harbour = { _id: 'place:harbour', parent: { _id: 'place:south' } };
  expect(server.get('place:mill')?.['parent']).toEqual(harbour);
  expect(server.get('person:p01')?.['parent']).toEqual({ _id: 'place:mill', parent: harbour });
  const results = [...(await allDocuments(afield.demo.couch, afield.demo.names.results)).values()];
  expect(results.filter(({ type }) => type === 'afield-result')).toHaveLength(1);
  expect(results.filter(({ type }) => type === 'afield-failures')).toEqual([]);
});

test('the queue waits for the server with a countdown when the change is to be made there', async ({ afield }) => {
  await afield.importSample();
  await afield.setOutage(true);
  await afield.choose('District North District', 'Health centre Hilltop Health Centre');
  await afield.moveChosenTo('Island District', 'server');

  await expect(afield.bulkOperations.locator('.attempt')).toHaveText('Tried 2 times.');
  await expect(afield.bulkOperations.locator('.next')).toHaveText(/Next try in \d:\d\d/);
  await expect(afield.bulkOperations.locator('.cursor')).toHaveText('0 of 11');
  const total = afield.page.getByRole('navigation').getByRole('button', { name: 'Queue' });
  await expect(total).toContainText('11');

  await afield.setOutage(false);
  await expect(afield.bulkOperations).toContainText('Done');
  await afield.isAtServer();
  expect((await afield.onServer('place:hilltop'))['parent']).toEqual({ _id: 'place:island' });
});

test('the switch shows the true state, also when another window turns it', async ({ afield }) => {
  await afield.importSample();
  const control = afield.page.getByRole('switch', { name: 'Server outage' });
  await afield.demo.setOutage(true);
  await expect(control).toBeChecked();
  // What the head says depends on whether a pull has met the outage already: both are true.
  await expect(afield.page.getByRole('status')).toContainText(/down now|does not answer/);
  await afield.choose('District North District', 'Health centre Hilltop Health Centre');
  await afield.moveChosenTo('Island District', 'server');
  await expect(afield.bulkOperations.locator('.attempt')).toHaveText('Tried 2 times.');
  await expect(afield.bulkOperations.locator('.error')).not.toContainText('no-answer');

  await afield.demo.setOutage(false);
  await expect(control).not.toBeChecked();
  await expect(afield.bulkOperations).toHaveAttribute('data-state', 'done');
  await afield.isAtServer();
  await expect(afield.page.locator('.error')).toHaveCount(0);
});
