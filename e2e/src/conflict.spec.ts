import { expect, test } from './demo.js';

test('two editors of one person: both changes are there afterwards', async ({ afield }) => {
  await afield.importSample();
  await afield.setOutage(true);
  await afield.choose(
    'District North District',
    'Health centre Riverside Health Centre',
    'Clinic Mill Lane Clinic',
    'Person Bela Mensah',
  );
  await afield.moveChosenTo('Bridge Clinic', 'server');
  await expect(afield.bulkOperations.locator('.attempt')).toHaveText('Tried 2 times.');
  await afield.editOnServer('person:p02', { phone: '+100200300' });

  await afield.setOutage(false);
  await afield.syncNow();
  await afield.isAtServer();
  expect(await afield.onServer('person:p02')).toMatchObject({
    phone: '+100200300',
    name: 'Bela Mensah',
    parent: { _id: 'place:bridge', parent: { _id: 'place:riverside', parent: { _id: 'place:north' } } },
  });
});
