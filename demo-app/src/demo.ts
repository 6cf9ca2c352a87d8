import {
  couchdbPublisher,
  createClient,
  type ActionPart,
  type Client,
  type Doc,
  type DocumentEvent,
  type EnqueueReceipt,
  type Target,
} from '@afield/client';
import { setContact, setParent } from '@afield/contacts';
import PouchDB from 'pouchdb-browser';
import { BehaviorSubject, type Observable } from 'rxjs';
import { Catalogue, isPlace } from './catalogue.js';
import type { DemoConfig } from './config.js';
import type { SourceFile } from './csv/table.js';
import { faultyAction, faultyOperations } from './faulty.js';
import { forgetOtherStores } from './forget-stores.js';
import { importFiles, type ImportProgress, type ImportSummary } from './import-documents.js';
import { lastEvents } from './last-events.js';
import { outageSwitch, type OutageSwitch } from './outage.js';
import type { DemoApi } from './page-api.js';
import { mustFail } from './must-fail.js';
import { planMove } from './plan-move.js';
import { phoneChange, practicePersons, secondRegistration } from './practice.js';

export type ImportState =
  | { readonly state: 'none' }
  | ({ readonly state: 'running' } & ImportProgress)
  | { readonly state: 'done'; readonly summary: ImportSummary }
  | { readonly state: 'failed'; readonly message: string };

/** Everything of the demo that is not drawn. */
export class Demo implements DemoApi {
  /** The last ones, the newest first. */
  readonly events$: Observable<readonly DocumentEvent[]>;
  readonly import$ = new BehaviorSubject<ImportState>({ state: 'none' });

  constructor(
    readonly config: DemoConfig,
    readonly client: Client,
    readonly catalogue: Catalogue,
    readonly outage: OutageSwitch,
  ) {
    this.events$ = lastEvents(client);
  }

  async importFiles(files: readonly SourceFile[]): Promise<ImportSummary> {
    this.import$.next({ state: 'running', done: 0, total: 0 });
    try {
      const summary = await importFiles(this.client.documents, files, Date.now(), (progress) =>
        this.import$.next({ state: 'running', ...progress }),
      );
      this.import$.next({ state: 'done', summary });
      this.client.syncNow();
      return summary;
    } catch (error) {
      this.import$.next({ state: 'failed', message: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  }

  async importSample(): Promise<ImportSummary> {
    const files = this.config.sample.map(async (name) => {
      const response = await fetch(`./sample/${encodeURIComponent(name)}`);
      if (!response.ok) throw new Error(`The sample file ${name} is not there.`);
      return { name, text: await response.text() };
    });
    return this.importFiles(await Promise.all(files));
  }

  planMove(ids: readonly string[], targetId: string): readonly ActionPart[] {
    return planMove(this.catalogue, ids, targetId);
  }

  async move(ids: readonly string[], targetId: string, target: Target): Promise<EnqueueReceipt> {
    return this.client.enqueue({ target, actions: this.planMove(ids, targetId) });
  }

  /** Queues five changes that must fail, so that failures can be looked at. */
  async failOnPurpose(): Promise<EnqueueReceipt> {
    const persons: string[] = [];
    let placeId: string | undefined;
    for (const entry of this.catalogue.entries()) {
      if (isPlace(entry)) placeId ??= entry.id;
      else if (entry.type === 'person' && entry.parentId !== undefined) persons.push(entry.id);
      if (placeId !== undefined && persons.length >= 2) break;
    }
    const [guarded, refused] = persons;
    if (placeId === undefined || guarded === undefined || refused === undefined) {
      throw new Error('Import the sample first: this needs a place and two persons who have one.');
    }
    const operations = mustFail(guarded, refused, placeId);
    return this.client.enqueue({ target: 'local', actions: [{ action: 'set-parent', operations }] });
  }

  /** Queues a change of the practice person's phone under this key: with the same phone it is a duplicate, else a conflict. */
  async changePhone(key: string, phone: string): Promise<EnqueueReceipt> {
    const [{ id }] = practicePersons(this.catalogue);
    return this.client.enqueue({ target: 'local', actions: phoneChange(id, key, phone) });
  }

  /** Queues the creation of a record that is there already, with other content. */
  async createAgain(): Promise<EnqueueReceipt> {
    const [, { id }] = practicePersons(this.catalogue);
    const doc = (await this.client.documents.get(id)) as Doc;
    const time = new Date().toLocaleTimeString('en-GB');
    return this.client.enqueue({ target: 'local', actions: secondRegistration(doc, `Registered again at ${time}`) });
  }

  /** Queues changes that a fault of this app stops in the middle. */
  meetFault(): Promise<EnqueueReceipt> {
    return this.client.enqueue({
      target: 'local',
      actions: [{ action: 'meet-a-fault', operations: faultyOperations() }],
    });
  }
}

/** Opens the device's stores. URL parameters for tests: `autoStart=false`, `batchSize=N`. */
export async function openDemo(config: DemoConfig, parameters: URLSearchParams): Promise<Demo> {
  if (config.forgetOthers) await forgetOtherStores(config.name);
  const batchSize = Number(parameters.get('batchSize') ?? '100');
  const client = createClient({
    name: config.name,
    PouchDB,
    actions: [setParent, setContact, faultyAction()],
    server: config.server,
    results: config.results,
    publishers: [couchdbPublisher({ url: config.events })],
    auth: { credentials: () => Promise.resolve({ type: 'basic', ...config.credentials }) },
    pullEveryS: 15,
    batchSize,
    autoStart: parameters.get('autoStart') !== 'false',
    environment: { warn: (line) => console.warn(line) },
  });
  const catalogue = new Catalogue();
  await catalogue.follow(client.documents);
  return new Demo(config, client, catalogue, outageSwitch(config.control));
}
