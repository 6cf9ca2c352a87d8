import { test as base, expect, type Locator, type Page } from '@playwright/test';
import { allDocuments, askFor, serveDemo, type RunningDemo, type StoredDocument } from '@afield/demo-app/host';

/** The page, and the words of the story: what a person does and sees. */
export class DemoPage {
  constructor(
    readonly page: Page,
    readonly demo: RunningDemo,
  ) {}

  async open(): Promise<void> {
    await this.page.goto(this.demo.address);
  }

  async importSample(): Promise<void> {
    await this.tab('Import');
    await this.page.getByRole('button', { name: 'Import the sample' }).last().click();
    const summary = this.page.locator('.import-summary');
    await expect(summary).toContainText('records imported');
    const imported = Number(/([\d,]+) records imported/.exec(await summary.innerText())?.[1]?.replace(',', ''));
    // The page may say for a moment what was true before it heard of the records.
    await expect
      .poll(async () => (await allDocuments(this.demo.couch, this.demo.names.app)).size)
      .toBeGreaterThanOrEqual(imported);
    await this.isAtServer();
  }

  /** Waits until the page says that nothing is left to bring to the server. */
  async isAtServer(): Promise<void> {
    await expect(this.page.getByRole('status')).toHaveText('Everything is at the server');
  }

  /** The same page once more, in another tab of the same browser. */
  async anotherTab(): Promise<DemoPage> {
    const other = new DemoPage(await this.page.context().newPage(), this.demo);
    await other.open();
    return other;
  }

  async tab(name: 'Places' | 'Queue' | 'Failed' | 'Conflicts' | 'Events' | 'Import'): Promise<void> {
    await this.page.getByRole('navigation').getByRole('button', { name }).click();
  }

  /** Opens the places on the way and ticks the last one. */
  async choose(...labels: readonly string[]): Promise<void> {
    for (const label of labels.slice(0, -1)) {
      const opener = this.page.getByRole('button', { name: `Open ${label}`, exact: true });
      const closer = this.page.getByRole('button', { name: `Close ${label}`, exact: true });
      await expect(opener.or(closer)).toBeVisible();
      if (await opener.isVisible()) await opener.click();
    }
    await this.page.getByRole('checkbox', { name: `Choose ${labels[labels.length - 1] ?? ''}`, exact: true }).check();
  }

  async moveChosenTo(name: string, where: 'local' | 'server' = 'local'): Promise<void> {
    await this.page.getByRole('button', { name: 'Move …' }).click();
    const dialog = this.page.getByRole('dialog');
    await dialog.getByRole('radio', { name: new RegExp(`^${name} (District|Health centre|Clinic)`) }).check();
    await dialog.getByRole('combobox').selectOption(where);
    await dialog.getByRole('button', { name: /^Move \(/ }).click();
    await expect(dialog).toBeHidden();
  }

  async setOutage(on: boolean): Promise<void> {
    const control = this.page.getByRole('switch', { name: 'Server outage' });
    // The person clicks the label: the box itself is drawn by the track.
    await this.page.getByText('Server outage').click();
    await expect(control).toBeChecked({ checked: on });
  }

  async syncNow(): Promise<void> {
    await this.page.getByRole('button', { name: 'Sync now' }).click();
  }

  get bulkOperations(): Locator {
    return this.page.locator('[data-bulk]');
  }

  /** One of them, by its number. */
  bulkOperation(sequence: number): Locator {
    const heading = this.page.getByRole('heading', { name: new RegExp(`^#${String(sequence)} `) });
    return this.bulkOperations.filter({ has: heading });
  }

  get failed(): Locator {
    return this.page.getByRole('region', { name: 'Failed' });
  }

  get conflicts(): Locator {
    return this.page.getByRole('region', { name: 'Conflicts' });
  }

  get events(): Locator {
    return this.page.getByRole('region', { name: 'Events' });
  }

  /** Queues the practice request under this key, and waits for the answer. */
  async queueUnder(key: string, answer: string | RegExp): Promise<void> {
    await this.tab('Conflicts');
    await this.conflicts.getByRole('textbox', { name: 'Key' }).fill(key);
    await this.conflicts.getByRole('button', { name: 'Queue this request' }).click();
    await expect(this.answer).toHaveText(answer);
  }

  /** What the practice form says. */
  get answer(): Locator {
    return this.conflicts.locator('.answer .badge');
  }

  /** The events that the server has, asked past the proxy. */
  async eventsOnServer(): Promise<readonly StoredDocument[]> {
    return [...(await allDocuments(this.demo.couch, this.demo.names.events)).values()];
  }

  get push(): Locator {
    return this.page.locator('[data-transfer=push]');
  }

  /** A document as the server has it, asked past the proxy. */
  async onServer(id: string): Promise<StoredDocument> {
    return (await askFor(this.demo.couch, 'GET', `${this.demo.names.app}/${encodeURIComponent(id)}`)) as StoredDocument;
  }

  /** Another person adds a document on the server. */
  async createOnServer(id: string, content: Readonly<Record<string, unknown>>): Promise<void> {
    await askFor(this.demo.couch, 'PUT', `${this.demo.names.app}/${encodeURIComponent(id)}`, content);
  }

  /** Another person edits a document on the server. */
  async editOnServer(id: string, change: Readonly<Record<string, unknown>>): Promise<void> {
    const doc = await this.onServer(id);
    await askFor(this.demo.couch, 'PUT', `${this.demo.names.app}/${encodeURIComponent(id)}`, { ...doc, ...change });
  }
}

/* What the browser itself writes, and no more: when a request fails, which an outage causes on purpose … */
const outage = /^Failed to load resource: net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|FAILED)$/;
/* … and when a checkpoint of the replication is looked for and not there yet. */
const notThere = /^Failed to load resource: the server responded with a status of 404 \(Not Found\)$/;
const checkpoint = /\/_local\/[^/]+$/;

interface Fixtures {
  readonly afield: DemoPage;
}

/** Each test has a server, a proxy and a browser store of its own, and fails on any error of the page. */
export const test = base.extend<Fixtures>({
  afield: async ({ page }, use) => {
    const demo = await serveDemo({ couchUrl: process.env['COUCHDB_URL'], ownDatabases: true });
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(`page error: ${error.stack ?? error.message}`));
    page.on('console', (message) => {
      const isProblem = message.type() === 'error' || message.type() === 'warning';
      const { url } = message.location();
      if (!isProblem || outage.test(message.text()) || (notThere.test(message.text()) && checkpoint.test(url))) return;
      problems.push(`${message.type()}: ${message.text()} ${url}`);
    });
    const afield = new DemoPage(page, demo);
    await afield.open();
    await use(afield);
    await page.close();
    await demo.close();
    expect(problems, 'errors and warnings of the page').toEqual([]);
  },
});

export { expect };
