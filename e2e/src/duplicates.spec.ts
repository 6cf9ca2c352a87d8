import { expect, test } from './demo.js';

test('O4 the same request twice is a duplicate, also after a reload; with other content it is refused, and a person decides', async ({
  afield,
}) => {
  await afield.importSample();
  const { conflicts, answer } = afield;
  await afield.queueUnder('visit-1', 'Queued as #1: the phone becomes +100 200 301.');
  await afield.queueUnder('visit-1', /^A duplicate: .* as #1\. Nothing was queued again\.$/);
  await afield.page.reload();
  await afield.queueUnder('visit-1', /^A duplicate: .* as #1\./);

  await conflicts.getByRole('button', { name: 'Same key, another phone' }).click();
  await expect(answer).toHaveText(/^Not queued: .* Compare them below and choose one/);
  const conflict = conflicts.locator('[data-conflict]');
  await expect(conflict).toHaveCount(1);
  const different = conflict.getByRole('table', { name: 'What is different: Amara Okello' });
  await expect(different.getByRole('row').last()).toHaveText(/phone\s*\+100 200 301\s*\+100 200 302/);
  await expect(afield.page.getByRole('status')).toHaveText('At the server, but 1 conflict waits for a decision.');
  await afield.tab('Queue');
  await expect(afield.bulkOperations).toHaveCount(1);

  await afield.tab('Conflicts');
  await conflict.getByRole('button', { name: 'Take the second' }).click();
  await expect(answer).toHaveText('The second one is queued, as #2.');
  await expect(conflict).toHaveCount(0);
  await conflicts.getByText('Decided').click();
  await expect(conflicts.locator('[data-decision=take-second]')).toContainText('The second one was taken, as #2. Done');
  await afield.isAtServer();
  expect((await afield.onServer('person:p01'))['phone']).toBe('+100 200 302');
});

test('O5 a record that is there already is not created again: a person keeps the first one, or takes the second', async ({
  afield,
}) => {
  await afield.importSample();
  await afield.tab('Conflicts');
  const { conflicts, failed } = afield;
  const conflict = conflicts.locator('[data-conflict=create]');
  const create = conflicts.getByRole('button', { name: 'Create a record that exists' });
  await create.click();
  await expect(conflict).toContainText('Bela Mensah');
  await expect(conflict).toContainText(/none\s*Registered again at/);
  await expect(afield.page.getByRole('status')).toHaveText(
    'At the server, but 1 change failed and 1 conflict waits for a decision.',
  );
  await conflict.getByRole('button', { name: 'Keep the first' }).click();
  await expect(conflict).toHaveCount(0);
  await afield.isAtServer();
  const { _rev, ...before } = await afield.onServer('person:p02');
  expect(before['note']).toBeUndefined();
  expect(_rev).toMatch(/^1-/);

  await create.click();
  await expect(conflict).toHaveCount(1);
  await afield.tab('Failed');
  await expect(failed.locator('[data-code=conflicting_content]')).toContainText('Compare the two under “Conflicts”');
  await afield.tab('Conflicts');
  await conflict.getByRole('button', { name: 'Take the second' }).click();
  await expect(conflict).toHaveCount(0);
  await expect(conflicts.locator('.answer .badge')).toHaveText(/^The second one is queued, as #\d\.$/);
  await expect.poll(async () => (await afield.onServer('person:p02'))['note']).toMatch(/^Registered again at/);
  expect(await afield.onServer('person:p02')).toMatchObject(before);
  await afield.isAtServer();
  await afield.tab('Failed');
  await expect(failed).toContainText('Nothing has failed.');
});
