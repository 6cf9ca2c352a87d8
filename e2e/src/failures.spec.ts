import type {} from '@afield/demo-app/page';
import { expect, test } from './demo.js';

test('what failed is listed with its reason', async ({ afield }) => {
  await afield.importSample();
  await afield.page.evaluate(async () => {
    const parent = { _id: 'place:bridge' };
    await window.afieldDemo?.client.enqueue({
      target: 'local',
      actions: [
        {
          action: 'set-parent',
          operations: [
            { id: 'person:nobody', parent },
            { id: 'person:p02', parent, current_parent_id: 'place:quay' },
            { parent },
            { id: 'person:p25', parent: null },
          ],
        },
      ],
    });
  });
  await afield.tab('Failed');
  const failed = afield.page.getByRole('region', { name: 'Failed' });
  await expect(failed.locator('[data-code]')).toHaveCount(4);
  await expect(failed.locator('[data-code=missing]')).toContainText('The record does not exist');
  await expect(failed.locator('[data-code=guard_mismatch]')).toContainText('Bela Mensah');
  await expect(failed.locator('[data-code=guard_mismatch]')).toContainText('changed by someone else');
  await expect(failed.locator('[data-code=no_id]')).toContainText('No record named');
  await expect(failed.locator('[data-code=forbidden]')).toContainText('a person must have a place');
  await afield.tab('Queue');
  await expect(afield.bulkOperations).toContainText('Done, but not for all of them');
  await expect(afield.bulkOperations).toContainText('4 failed');
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
