import { expect, test } from './demo.js';

test('O8 an event is seen in every tab, also without a network, and in a tab that is opened later', async ({
  afield,
}) => {
  await afield.importSample();
  const second = await afield.anotherTab();
  await second.tab('Events');
  await expect(second.events).toContainText('There are no events yet');
  await afield.setOutage(true);
  await afield.queueUnder('visit-1', /^Queued as #1/);

  const event = second.events.locator('[data-event]');
  await expect(event).toHaveCount(1);
  await expect(event.getByRole('heading')).toHaveText('Amara Okello');
  await expect(event).toContainText('documents.updated.person');
  await expect(event).toContainText('Changed: yes');
  await expect(event).toContainText('Event before it: no');
  await expect(second.events).toContainText('Another tab publishes the events');

  const third = await afield.anotherTab();
  await third.tab('Events');
  await expect(third.events.locator('[data-event]')).toHaveCount(1);
  const id = await event.getAttribute('data-event');
  await expect(third.events.locator('[data-event]')).toHaveAttribute('data-event', id ?? '');
  expect(await afield.eventsOnServer()).toEqual([]);
});

test('O7 events that an outage holds back are counted, outlive a reload, and are published exactly once', async ({
  afield,
}) => {
  await afield.importSample();
  await afield.setOutage(true);
  await afield.queueUnder('visit-1', /^Queued as #1/);
  await afield.queueUnder('visit-2', /^Queued as #2/);
  await afield.tab('Events');
  const publisher = afield.events.locator('[data-transfer=publisher-couchdb]');
  const tally = afield.page.getByRole('navigation').getByRole('button', { name: 'Events' });
  await expect(publisher).toContainText('2 events are not published yet');
  await expect(publisher.locator('.next')).toHaveText(/Next try in \d:\d\d/);
  await expect(tally).toHaveText(/Events\s+2/);

  await afield.page.reload();
  await afield.tab('Events');
  await expect(publisher).toContainText('2 events are not published yet');
  await expect(afield.events.locator('[data-event]')).toHaveCount(2);
  await expect(afield.events.locator('[data-event]').first()).toContainText('Changed: no');
  await expect(afield.events.locator('[data-event]').first()).toContainText('Event before it: yes');
  expect(await afield.eventsOnServer()).toEqual([]);

  await afield.setOutage(false);
  await afield.isAtServer();
  await expect(publisher).toContainText('None waits · 2 published so far');
  await expect(tally).toHaveText('Events');
  const stored = [...(await afield.eventsOnServer())].sort((a, b) => Number(a['sequence']) - Number(b['sequence']));
  expect(stored).toMatchObject([
    { key: 'visit-1', name: 'documents.updated.person', changed: true, previous: null },
    { key: 'visit-2', name: 'documents.updated.person', changed: false, previous: stored[0]?._id },
  ]);
  // Written once, and never again.
  expect(stored.map(({ _rev }) => _rev.split('-')[0])).toEqual(['1', '1']);
});
