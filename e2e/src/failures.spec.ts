import { expect, test } from './demo.js';

test('what failed is listed with its reason', async ({ afield }) => {
  await afield.importSample();
  await afield.tab('Failed');
  const failed = afield.page.getByRole('region', { name: 'Failed' });
  await expect(failed).toContainText('Nothing has failed');
  await failed.getByRole('button', { name: 'Queue five changes that must fail' }).click();
  await expect(failed.locator('[data-code]')).toHaveCount(5);
  await expect(failed.locator('[data-code=missing]').first()).toContainText('The record does not exist');
  await expect(failed.locator('[data-code=missing]').first()).toContainText('make the change again');
  await expect(failed.locator('[data-code=guard_mismatch]')).toContainText('changed by someone else');
  await expect(failed.locator('[data-code=no_id]')).toContainText('No record named');
  await expect(failed.locator('[data-code=forbidden]')).toContainText('a person must have a place');
  await afield.tab('Queue');
  await expect(afield.bulkOperations).toContainText('Done, but not for all of them');
  await expect(afield.bulkOperations).toContainText('5 failed');
  await expect(afield.page.getByRole('status')).toHaveText('At the server, but 5 changes failed.');
});

test('a move is offered only to where it makes sense', async ({ afield }) => {
  await afield.importSample();
  await afield.choose('District North District', 'Health centre Riverside Health Centre');
  await afield.page.getByRole('button', { name: 'Move …' }).click();
  const dialog = afield.page.getByRole('dialog');
  await expect(dialog.getByRole('radio')).toHaveCount(2);
  await expect(dialog).toContainText('South District');
  await expect(dialog).not.toContainText('North District');
  await dialog.getByRole('searchbox').fill('nowhere');
  await expect(dialog).toContainText('No place is called so.');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await afield.choose('District North District');
  await afield.page.getByRole('button', { name: 'Move …' }).click();
  await expect(dialog).toContainText('A district lies in no other place');
});

test('an import says what was not clean, and doing it again changes nothing', async ({ afield }) => {
  await afield.importSample();
  const findings = afield.page.locator('[data-finding]');
  await expect(afield.page.locator('[data-finding=reference-twice]')).toContainText('1 ×');
  await expect(afield.page.locator('[data-finding=column-twice]')).toContainText('report.pregnancy.csv');
  await expect(afield.page.locator('[data-finding=person-without-place]')).toContainText('1 ×');
  const count = await findings.count();
  await afield.page.getByRole('button', { name: 'Import the sample' }).last().click();
  await expect(afield.page.locator('.import-summary')).toContainText('0 records imported');
  await expect(findings).toHaveCount(count);
});
