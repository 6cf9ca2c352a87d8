import { setTimeout as wait } from 'node:timers/promises';
import { allDocuments, askFor, type Couch } from '@afield/demo-app/host';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabase } from '@afield/devserver';
import { seededRandom } from '../real-browser/seeded-random.js';
import { Device } from './device.js';
import type { LongTask, Shown } from './messages.js';
import { bringUp, inTheMiddle, takeDown, troublesOf, type Trouble } from './troubles.js';
import { village, type Village, type VillageSize } from './village.js';
import { changesBetween, wrongInMove, type Ends } from './wrong-in-move.js';

/** Mistakes that must be noticed. */
export const mistakes = {
  'wrong-lineage': 'one lineage on the device is the old one',
  'skip-reports': 'the plan passes over reports',
  'edit-elsewhere': 'someone edits a document that has nothing to do with the move',
} as const;
export type Mistake = keyof typeof mistakes;

export interface MoveOptions extends VillageSize {
  readonly mistake?: Mistake | undefined;
  readonly say: (line: string) => void;
}

export interface MoveReport {
  readonly village: Village;
  /** After the move, and after the second run of the same request. */
  readonly ends: readonly [Ends, Ends];
  /** Empty when all is well. */
  readonly wrong: readonly string[];
  readonly kills: number;
  readonly outages: number;
  readonly longTasks: readonly LongTask[];
}

/**
 * A health centre with all below it is moved: planned offline, killed while it is planned, while it runs, and while it is
 * brought to a server that is down twice meanwhile. Then the same is asked once more.
 */
export async function move(options: MoveOptions): Promise<MoveReport> {
  const server = await serverUnderTest();
  const databases = temporaryDatabases(server.directUrl, server.admin);
  let device: Device | undefined;
  try {
    const made = village(options);
    const security = 'everyone';
    const records = await databases.create('records', { security, docs: made.docs });
    const results = await databases.create('results', { security });
    const events = await databases.create('events', { security });
    const through = ({ url }: TemporaryDatabase): string => url.replace(server.directUrl, server.url);
    device = await Device.prepare({
      records: through(records),
      results: through(results),
      events: through(events),
      documents: made.docs.length,
      online: true,
      requests: [],
      tellAll: false,
      skipsReports: options.mistake === 'skip-reports',
    });
    return await new Move(options, made, server, { records, results, events }, device).run();
  } finally {
    await device?.close();
    await databases.dispose();
    await server.close();
  }
}

type Databases = Readonly<Record<'records' | 'results' | 'events', TemporaryDatabase>>;

class Move {
  readonly #random: () => number;
  readonly #couch: Couch;
  readonly #wrong: string[] = [];
  /** Sequence of the server's records before anything is brought there. */
  #before = 0;
  #outages = 0;

  constructor(
    private readonly options: MoveOptions,
    private readonly village: Village,
    private readonly server: ServerUnderTest,
    private readonly databases: Databases,
    private readonly device: Device,
  ) {
    this.#random = seededRandom(options.seed);
    this.#couch = { address: server.directUrl, ...server.admin };
  }

  async run(): Promise<MoveReport> {
    await this.#arrive();
    const took = await this.#askOffline();
    await this.#workOffline(took);
    await this.#bring();
    const first = await this.#allOf();
    this.#wrong.push(...wrongInMove(this.village, this.#withMistake(first)));
    this.#say(`${String(first.events.length)} events, and each lineage was walked, on device and server`);
    await this.#again();
    const second = await this.#allOf();
    this.#wrong.push(...changesBetween(first, second), ...wrongInMove(this.village, second));
    this.#say(`the same request again: ${String(second.bulks[1]?.total)} operations`);
    const { wrong, kills, longTasks } = this.device;
    return {
      village: this.village,
      ends: [first, second],
      wrong: [...new Set([...wrong, ...this.#wrong])],
      kills,
      outages: this.#outages,
      longTasks,
    };
  }

  /** Everything comes to the device, and the index gets ready. */
  async #arrive(): Promise<void> {
    await this.device.begin();
    await this.device.until(({ isSettled }) => isSettled, 'the documents on the device, and the index');
    this.#before = await this.#sequence();
    this.#say(`${String(this.device.shown?.documents)} documents are on the device, the index is ready`);
  }

  /** Says what the request would do, and queues it. Answers with how long saying so took. Milliseconds. */
  async #askOffline(): Promise<number> {
    await this.server.proxy.setOutage('refused');
    this.device.tell({ online: false });
    const { dryRun, took } = await this.device.ask({ requests: ['first'] }, 'dryRun');
    this.#checkDryRun(dryRun, this.village.byAction, took);
    return took;
  }

  /** It is planned and runs, killed once in each. */
  async #workOffline(planningMs: number): Promise<void> {
    const { device } = this;
    await device.until(({ bulks: [bulk] }) => bulk !== undefined && bulk.state !== 'queued', 'the plan to run');
    await wait(this.#random() * planningMs * 0.8);
    await this.#killAndBegin('the plan');
    const share = 0.1 + 0.8 * this.#random();
    const isSoFar = ({ bulks: [bulk] }: Shown): boolean =>
      bulk !== undefined && bulk.total > 0 && bulk.cursor >= share * bulk.total;
    await device.until(isSoFar, 'a part of the operations to be done');
    await this.#killAndBegin('the work');
    await device.until(({ bulks: [bulk] }) => bulk?.state === 'done', 'the move to be done on the device');
    const sent = await this.#sent();
    if (sent > 0) this.#wrong.push(`${String(sent)} documents came to the server while it was down`);
    this.#say(`offline, ${String(device.shown?.bulks[0]?.applied)} operations are applied on the device`);
  }

  /** The network comes back; the server goes down twice, and the browser is killed once. */
  async #bring(): Promise<void> {
    if (this.options.mistake === 'edit-elsewhere') await this.#editElsewhere();
    // Some documents have two operations, and come once.
    const changes = 0.8 * (this.device.shown?.bulks[0]?.total ?? 0);
    await bringUp(this.server.proxy);
    this.device.tell({ online: true });
    for (const trouble of troublesOf(changes, this.#random)) await this.#through(trouble);
    await this.device.until(({ isSettled }) => isSettled, 'everything to be at the server');
  }

  async #through(trouble: Trouble): Promise<void> {
    const { proxy } = this.server;
    const parts = { proxy, database: this.databases.records.name, sent: () => this.#sent() };
    const { what: how } = trouble;
    let failed = 0;
    const happened = inTheMiddle(trouble, parts, async () => {
      failed = this.device.shown?.failedPushes ?? 0;
      if (how === 'kill') await this.device.kill();
      else await takeDown(proxy, how);
    });
    await this.device.waitFor(happened, 'the push');
    const sent = `${String(await this.#sent())} documents are at the server`;
    if (how === 'kill') return this.#beginAgain(sent);
    await this.device.until(({ failedPushes }) => failedPushes > failed, 'the push to notice that the server is down');
    await wait(this.#random() * 1000);
    this.#outages += 1;
    this.#say(`${sent}, which was down (${how}): ${this.device.shown?.push ?? ''}`);
    await bringUp(proxy);
  }

  async #again(): Promise<void> {
    const { dryRun, took } = await this.device.ask({ requests: ['first', 'second'], tellAll: false }, 'dryRun');
    this.#checkDryRun(dryRun, {}, took);
    await this.device.until(({ isSettled, bulks }) => isSettled && bulks.length === 2, 'the second run');
  }

  #checkDryRun(said: Readonly<Record<string, number>>, truth: Readonly<Record<string, number>>, took: number): void {
    const text = (counts: object): string =>
      Object.entries(counts)
        .map(([action, count]) => `${String(count)} ${action}`)
        .join(', ') || 'nothing';
    if (text(said) !== text(truth)) this.#wrong.push(`the dry run says ${text(said)}; true is ${text(truth)}`);
    this.#say(`dry run: ${text(said)} (${took.toFixed(0)} ms)`);
  }

  async #killAndBegin(when: string): Promise<void> {
    await this.device.kill();
    await this.#beginAgain(when);
  }

  async #beginAgain(when: string): Promise<void> {
    const [bulk] = this.device.shown?.bulks ?? [];
    this.#say(`killed, ${when}: ${bulk?.state ?? ''}, ${String(bulk?.cursor)} of ${String(bulk?.total)} are done`);
    await this.device.begin();
  }

  async #allOf(): Promise<Ends> {
    const { rows, failures } = await this.device.ask({ tellAll: true }, 'rows');
    const [records = [], results = [], events = []] = await Promise.all(
      (['records', 'results', 'events'] as const).map(async (name) => [
        ...(await allDocuments(this.#couch, this.databases[name].name)).values(),
      ]),
    );
    const server = records.map((doc) => ({ id: doc._id, doc }));
    return { device: rows, server, bulks: this.device.shown?.bulks ?? [], failures, events, results };
  }

  /** Documents of the move that are at the server. */
  async #sent(): Promise<number> {
    return (await this.#sequence()) - this.#before;
  }

  async #sequence(): Promise<number> {
    const info = (await askFor(this.#couch, 'GET', this.databases.records.name)) as { update_seq: number | string };
    return parseInt(String(info.update_seq), 10);
  }

  async #editElsewhere(): Promise<void> {
    const path = `${this.databases.records.name}/centre-2`;
    const doc = (await askFor(this.#couch, 'GET', path)) as object;
    await askFor(this.#couch, 'PUT', path, { ...doc, name: 'Another name' });
  }

  #withMistake(ends: Ends): Ends {
    if (this.options.mistake !== 'wrong-lineage') return ends;
    const rows = ends.device as { readonly id: string; readonly doc: object }[];
    const old = this.village.docs.find(({ _id }) => _id.startsWith('person-'));
    const device = rows.map(({ id, doc }) => ({ id, doc: id === old?._id ? { ...doc, parent: old['parent'] } : doc }));
    return { ...ends, device };
  }

  #say(line: string): void {
    this.options.say(line);
  }
}
