import { expect, test } from './demo.js';

test('R19 in an outage one bulk operation is paused and another cancelled; after a reload the first is resumed', async ({
  afield,
}) => {
  await afield.importSample();
  await afield.setOutage(true);
  await afield.choose('District North District', 'Health centre Riverside Health Centre', 'Clinic Mill Lane Clinic');
  await afield.moveChosenTo('Harbour Health Centre', 'server');
  await afield.choose('District North District', 'Health centre Hilltop Health Centre');
  await afield.moveChosenTo('Island District', 'server');
  const [first, second] = [afield.bulkOperation(1), afield.bulkOperation(2)];
  await expect(first).toHaveAttribute('data-state', 'waiting-retry');
  await first.getByRole('button', { name: 'Pause' }).click();
  await expect(first).toContainText('Paused');
  await expect(first.locator('.next')).toHaveCount(0);
  await second.getByRole('button', { name: 'Cancel' }).click();
  await expect(second).toContainText('Cancelled. What was done stays');
  await expect(second).toContainText('11 changes were not done.');
  await second.getByText('changes were not done').click();
  await expect(second.getByRole('listitem')).toHaveCount(11);
  await expect(second.getByRole('listitem').first()).toHaveText('Move: Hilltop Health Centre');
  await expect(second.getByRole('button', { name: 'Pause' })).toHaveCount(0);

  await afield.page.reload();
  await afield.tab('Queue');
  await expect(first).toContainText('Paused');
  await expect(second).toContainText('Cancelled');
  await expect(afield.page.getByRole('status')).not.toContainText('Opening');

  // What is queued now and reaches the server shows that the paused one could have, too.
  await afield.setOutage(false);
  await afield.choose('District North District', 'Health centre Riverside Health Centre', 'Clinic Bridge Clinic');
  await afield.moveChosenTo('Harbour Health Centre', 'server');
  await expect(afield.bulkOperation(3)).toHaveAttribute('data-state', 'done');
  await expect(first).toContainText('Paused');
  await expect(afield.page.getByRole('status')).toHaveText('A part of the queue is paused');
  expect((await afield.onServer('place:mill'))['parent']).toMatchObject({ _id: 'place:riverside' });

  await first.getByRole('button', { name: 'Resume' }).click();
  await expect(first).toHaveAttribute('data-state', 'done');
  await afield.isAtServer();
  expect((await afield.onServer('place:mill'))['parent']).toMatchObject({ _id: 'place:harbour' });
  expect((await afield.onServer('place:hilltop'))['parent']).toEqual({ _id: 'place:north' });

  await second.getByRole('button', { name: 'Try the rest again' }).click();
  await expect(second).toContainText('The rest goes on as #4.');
  await expect(afield.bulkOperation(4)).toHaveAttribute('data-state', 'done');
  await expect(second.getByRole('button')).toHaveCount(0);
  await afield.isAtServer();
  expect((await afield.onServer('place:hilltop'))['parent']).toEqual({ _id: 'place:island' });
});

test('R19 failures are retried, edited and discarded, and what became of them outlives a reload', async ({
  afield,
}) => {
  await afield.importSample();
  await afield.tab('Failed');
  const { failed } = afield;
  await failed.getByRole('button', { name: 'Queue five changes that must fail' }).click();
  await expect(failed.locator('[data-code]')).toHaveCount(5);

  // The record that was missing is there now.
  const parent = { _id: 'place:bridge', parent: { _id: 'place:riverside', parent: { _id: 'place:north' } } };
  await afield.createOnServer('person:not-there-1', { type: 'person', name: 'Late Arrival', parent });
  await afield.syncNow();
  const late = failed.locator('[data-code=missing]', { hasText: 'Late Arrival' });
  await late.getByRole('button', { name: 'Try again' }).first().click();
  await expect(failed).toContainText('1 change queued again.');
  await expect(failed.locator('[data-code]')).toHaveCount(4);

  const guarded = failed.locator('[data-code=guard_mismatch]');
  const name = await guarded.getByRole('heading').innerText();
  await guarded.getByRole('button', { name: 'Edit and try again' }).click();
  const dialog = afield.page.getByRole('dialog', { name: 'Edit “Move” and try again' });
  const guard = dialog.getByRole('textbox', { name: 'current_parent_id' });
  const lineage = dialog.getByRole('textbox', { name: 'parent', exact: true });
  await expect(guard).toHaveValue('place:where-nobody-is');
  const before = await lineage.inputValue();
  await lineage.fill('{ "_id": ');
  await dialog.getByRole('button', { name: 'Try again' }).click();
  await expect(lineage).toHaveAccessibleDescription(/not JSON/);
  await lineage.fill(before);
  await guard.fill('5');
  await dialog.getByRole('button', { name: 'Try again' }).click();
  await expect(guard).toHaveAccessibleDescription(/expected string/);
  await expect(lineage).toHaveAccessibleDescription('');
  await expect(failed.locator('[data-code]')).toHaveCount(4);
  await guard.fill('');
  await dialog.getByRole('button', { name: 'Try again' }).click();
  await expect(dialog).toBeHidden();
  await expect(guarded).toHaveCount(0);

  const nameless = failed.locator('[data-code=no_id]');
  const question = afield.page.getByRole('dialog', { name: /^Discard / });
  await nameless.getByRole('button', { name: 'Discard' }).click();
  await question.getByRole('button', { name: 'Keep' }).click();
  await expect(nameless).toHaveCount(1);
  await nameless.getByRole('button', { name: 'Discard' }).click();
  await question.getByRole('button', { name: 'Discard' }).click();
  await expect(nameless).toHaveCount(0);
  await expect(failed).toContainText('1 change discarded.');

  await afield.page.reload();
  await afield.tab('Failed');
  await expect(failed.locator('[data-code]')).toHaveCount(2);
  await failed.getByText('Tried again or discarded').click();
  const resolved = failed.locator('[data-resolution]');
  await expect(resolved).toHaveCount(3);
  await expect(resolved.filter({ hasText: 'Late Arrival' })).toContainText('Tried again as #2. It worked.');
  await expect(resolved.filter({ hasText: name })).toContainText('Tried again as #3. It worked.');
  await expect(resolved.filter({ hasText: 'No record named' })).toContainText('Discarded.');
  await expect(afield.page.getByRole('status')).toHaveText('At the server, but 2 changes failed.');
  expect((await afield.onServer('person:not-there-1'))['parent']).toEqual(JSON.parse(before));
});

test('R19 all failures of a kind are tried again at a rate, and all that is left is discarded', async ({ afield }) => {
  await afield.importSample();
  await afield.tab('Failed');
  const { failed } = afield;
  await failed.getByRole('button', { name: 'Queue five changes that must fail' }).click();
  await expect(failed.locator('[data-code]')).toHaveCount(5);
  await failed.getByRole('combobox', { name: 'Show' }).selectOption('The record does not exist (2)');
  await expect(failed.locator('[data-code]')).toHaveCount(2);
  const rate = failed.getByRole('textbox', { name: 'Changes a second' });
  await rate.fill('many');
  await failed.getByRole('button', { name: 'Try all 2 again' }).click();
  await expect(rate).toHaveAccessibleDescription(/above 0/);
  await rate.fill('5');
  await failed.getByRole('button', { name: 'Try all 2 again' }).click();
  await expect(failed).toContainText('2 changes queued again.');
  await expect(failed.locator('.resolved summary').first()).toHaveText(/discarded\s+2/);
  await afield.tab('Queue');
  await expect(afield.bulkOperation(2)).toContainText('at most 5 a second');
  await expect(afield.bulkOperation(2)).toHaveAttribute('data-state', 'done-with-failures');

  await afield.tab('Failed');
  await failed.getByRole('combobox', { name: 'Show' }).selectOption('');
  await expect(failed.locator('[data-code]')).toHaveCount(5);
  await failed.getByRole('button', { name: 'Discard all 5' }).click();
  await afield.page
    .getByRole('dialog', { name: 'Discard 5 changes?' })
    .getByRole('button', { name: 'Discard' })
    .click();
  await expect(failed).toContainText('Nothing has failed.');
  await failed.getByText('Tried again or discarded').click();
  await expect(failed.locator('[data-resolution=retried]')).toHaveCount(2);
  await expect(failed.locator('[data-resolution=retried]').first()).toContainText('It failed again.');
  await expect(failed.locator('[data-resolution=discarded]')).toHaveCount(5);
});

test('R19 what a fault of the app has left undone is counted, and tried again', async ({ afield }) => {
  await afield.tab('Failed');
  await afield.page.getByRole('button', { name: 'meet a fault' }).click();
  const stopped = afield.bulkOperation(1);
  await expect(stopped).toContainText('Stopped by a fault in this app');
  await expect(stopped).toContainText('50 changes were not done.');
  await stopped.getByRole('button', { name: 'Try the rest again' }).click();
  await expect(afield.bulkOperation(2)).toContainText('50 of 50');
  await expect(stopped).toContainText('The rest goes on as #2.');
  await expect(stopped.getByRole('button')).toHaveCount(0);
});
