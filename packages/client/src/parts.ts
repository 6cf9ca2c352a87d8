import { defaultEnvironment } from './environment.js';
import { Requests, sessionUrlOf } from './http/requests.js';
import { ServerDatabases } from './http/server-databases.js';
import { Session, type SignInNews } from './http/session.js';
import type { ClientOptions } from './model/client.js';
import type { Target } from './model/states.js';
import { actionsByName, checkIndexedDB, plansByName, replicationMode } from './options.js';
import { typeOf } from './actions/document.js';
import { Indexes } from './lookup/indexes.js';
import { Events } from './outbox/events.js';
import { PageEvents } from './outbox/page-events.js';
import { publishContext } from './outbox/publish-context.js';
import { publishTaken } from './outbox/taken-event.js';
import { takenBy } from './outbox/taken.js';
import { Trail } from './outbox/trail.js';
import { PendingFile } from './pending/pending-file.js';
import { Claims } from './queue/claims.js';
import { takenOperation } from './queue/conflicts.js';
import { Control } from './queue/control.js';
import { FailureControl } from './queue/failure-control.js';
import { Endings } from './queue/endings.js';
import { DocumentHashes } from './queue/document-hashes.js';
import { Failures } from './queue/failures.js';
import { ConflictWatch } from './conflict-watch.js';
import type { RegainedPlace } from './heal/regaining.js';
import { OpenConflicts } from './heal/open-conflicts.js';
import { Housekeeping } from './queue/housekeeping.js';
import { Orphans } from './queue/orphans.js';
import { Quarantine } from './queue/quarantine.js';
import { QuarantineControl } from './queue/quarantine-control.js';
import { Queue } from './queue/queue.js';
import { Refused } from './queue/refused.js';
import { Reports } from './queue/reports.js';
import type { Header } from './queue/stored.js';
import { Retries } from './queue/retries.js';
import { TakenOver } from './queue/taken-over.js';
import { Writers } from './queue/writers.js';
import { replicationOf } from './replications.js';
import { RetryPolicy } from './retry/policy.js';
import { rampOfR2 } from './retry/ramp.js';
import { Scheduler } from './retry/scheduler.js';
import { Gate } from './run/gate.js';
import { Planning } from './run/planning.js';
import { Runner } from './run/runner.js';
import { LocalDatabase } from './store/local-database.js';
import { EditFailures } from './sync/edit-failures.js';
import { Refusals } from './sync/refusals.js';
import { Resending } from './sync/resending.js';
import { Reversal } from './sync/reversal.js';
import type { TransferParts } from './sync/transfer.js';
import { TabLock } from './tabs/tab-lock.js';

/** What the parts call when something has happened. None is called before all parts are there. */
export interface Calls {
  readonly closed: AbortSignal;
  /** Something that is shown has changed. */
  readonly changed: () => void;
  readonly failuresChanged: () => void;
  readonly quarantineChanged: () => void;
  /** This tab has stored a conflict, or what a person decided on one. */
  readonly quarantineAdded: () => void;
  readonly conflictsChanged: () => void;
  /** This tab has found a conflict that is left alone, or one is over. */
  readonly conflictsFound: () => void;
  /** Something is stored, or was removed, that another tab may wait for. */
  readonly announce: () => void;
  /** There may be something to do. */
  readonly poke: () => void;
  /** A bulk operation came to its end, or documents were written there. */
  readonly wrote: (target: Target) => void;
  /** The server has refused something, or taken it after all. */
  readonly refusalsChanged: () => void;
  /** Operations that had failed are applied after all. Answers whether all publications know that they have events again. */
  readonly regained: (places: readonly RegainedPlace[]) => Promise<boolean>;
  /** Someone has signed in anew. */
  readonly signedInAnew: (news: SignInNews) => void;
  /** The push has taken a step. */
  readonly pushed: () => void;
  /** The push has nothing left that it could bring now. */
  readonly pushRests: () => void;
  /** The server was found to have less than it had. */
  readonly setBack: () => void;
  /** Bulk operations were removed from the store. */
  readonly forgot: () => void;
}

export type Parts = ReturnType<typeof partsOf>;

/** The parts of a client, wired together. `options` are checked; what is left out has its default here. */
export function partsOf(options: ClientOptions, calls: Calls) {
  const environment = { ...defaultEnvironment(), ...options.environment };
  const { clock, newId, breathe, warn } = environment;
  const { closed, changed, poke, wrote } = calls;
  const actions = actionsByName(options.actions);
  const plans = plansByName(options.plans ?? [], options.indexes ?? []);
  checkIndexedDB(options, environment);
  const tab = newId();
  const lease = newId();
  /** How the ids of a bulk operation's payloads begin: under this tab's name, so that whose they are is known. */
  const payloadOf = (bulkOperationId: string): string => `p:${tab}:${bulkOperationId}:`;
  const planRequestOf = (bulkOperationId: string): string => `q:${tab}:${bulkOperationId}`;

  const queueStore = new LocalDatabase(() => new options.PouchDB(`${options.name}-afield-queue`));
  const documentStore = new LocalDatabase(() => new options.PouchDB(options.documents ?? options.name));
  const queue = new Queue(queueStore, breathe);
  const edits = new EditFailures({
    queue,
    shown: changed,
    unread: () => {
      warn('Refused edits of the app could not be read. `failed` counts them when they were read again.');
    },
    closed,
  });
  const failures = new Failures(queue.docs, () => {
    edits.changed();
    calls.failuresChanged();
  });
  const reports = new Reports(queue);
  const hashes = new DocumentHashes(queue.contents);
  const control = new Control(queue, clock);
  const tabLock = new TabLock(environment.locks, options.name, tab);
  const claims = new Claims({ queue, clock, tabLock, closed, announce: calls.announce });
  const quarantine = new Quarantine({
    queue,
    clock,
    changed: calls.quarantineChanged,
    added: calls.quarantineAdded,
  });
  const endings = new Endings({ queue, failures, reports, quarantine, clock });
  const takenOver = new TakenOver({ queue, failures, endings, clock });
  const retries = new Retries({ queue, failures, reports, endings, takenOver, clock, newId, payloadOf });
  const quarantineControl = new QuarantineControl({ quarantine, queue, endings, clock, newId, payloadOf });
  const refused = new Refused({ quarantine, contents: queue.contents, newId, payloadOf, planRequestOf });

  const policy = new RetryPolicy(options.ramp ?? rampOfR2, options.jitter ?? 0.2, environment.random);
  const scheduler = new Scheduler(clock, () => policy.spread());

  const remember = (user: string): Promise<string> => queue.store.claim(user);
  const session = new Session(options.auth, clock, poke, warn, remember, calls.signedInAnew);
  session.expect(options.user);
  const gate = new Gate({ session, connectivity: environment.connectivity, scheduler, clock, poke });
  const timeoutMs = (options.requestTimeoutS ?? 60) * 1000;
  const requests = new Requests({
    fetch: environment.fetch,
    session,
    clock,
    timeoutMs,
    closed,
    server: options.server,
    sessionUrl: options.server === undefined ? undefined : sessionUrlOf(options.server),
    maxRequestBytes: options.maxRequestBytes,
  });
  const databases = new ServerDatabases(options.server, requests);
  const server = options.server === undefined ? undefined : databases.documents;
  const stores = { local: documentStore, server };
  const handlerFetch: typeof fetch = (input, init) => requests.handlerFetch(input, init);

  const indexes = new Indexes(options.indexes ?? [], {
    ...environment,
    client: options.name,
    documents: documentStore,
    scheduler,
    timeoutMs,
    closed,
    changed: poke,
  });

  const events = new Events(queue);
  const pageEvents = new PageEvents({ queue, events, closed, breathe });
  const planning = new Planning({
    queue,
    plans,
    actions,
    readers: stores,
    indexes,
    handlerFetch,
    clock,
    closed,
    breathe,
    newPayload: () => payloadOf(newId()),
  });
  const runner = new Runner({
    queue,
    failures,
    takenOver,
    quarantine,
    quarantineControl,
    actions,
    planning,
    events: { typeOf: options.typeOf ?? typeOf, now: () => clock.wall() },
    trail: new Trail(queue, hashes),
    pageEvents,
    stores,
    server: databases,
    scheduler,
    policy,
    clock,
    gate,
    batchSize: options.batchSize ?? 100,
    otherRunnerMs: 2 * timeoutMs,
    appVersion: options.appVersion,
    lease,
    handlerFetch,
    breathe,
    closed,
    changed,
    wrote,
    warn,
  });

  const writers = new Writers(queue, breathe, hashes);
  const transfer: TransferParts = { queue, scheduler, policy, clock, gate, closed, changed, warn };
  const replication = replicationOf(options, {
    ...transfer,
    local: documentStore,
    requests,
    hashes,
    failures,
    newId,
    refusals: new Refusals({
      queue,
      failures,
      reports,
      writers,
      clock,
      changed: () => {
        edits.changed();
        calls.refusalsChanged();
      },
    }),
    pushed: calls.pushed,
    pushRests: calls.pushRests,
    setBack: calls.setBack,
    pulled: () => {
      indexes.poke();
      conflictWatch.poke();
    },
  });
  const openConflicts = new OpenConflicts(queue, calls.conflictsChanged);
  const conflictWatch = new ConflictWatch({
    ...transfer,
    local: documentStore,
    writers,
    failures,
    reports,
    quarantine,
    endings,
    actions,
    appVersion: options.appVersion,
    conflicts: openConflicts,
    resolve: options.resolveConflict,
    follows: replicationMode(options) !== 'managed',
    wrote: () => {
      wrote('local');
    },
    regained: calls.regained,
    failed: calls.refusalsChanged,
    found: calls.conflictsFound,
  });
  const sendAgain = (ids: readonly string[]): Promise<void> => replication?.sendAgain(ids) ?? Promise.resolve();
  const resending = new Resending({ failures, sendAgain, clock, closed });
  const reversal =
    replication === undefined
      ? undefined
      : new Reversal({
          local: documentStore,
          server: databases.documents,
          failures,
          sendsFirst: replicationMode(options) === 'external',
        });
  // The failure of it is taken over, if it is still open.
  quarantineControl.taking('create', async (entry) => takenOperation(entry, (await endings.failureOf(entry))?._id));
  quarantineControl.taking('event', async (entry) => {
    await publishTaken(entry, options.publishers ?? [], publishContext(requests, closed, 1));
    return undefined;
  });
  const failureControl = new FailureControl({
    failures,
    retries,
    actions,
    breathe,
    sendAgain,
    revertDocuments: reversal === undefined ? undefined : (ids, keep) => reversal.revert(ids, keep),
  });

  /** Whether the server has, or has refused for good, all that is here, and nothing is left to be healed. */
  const isConfirmed = async (): Promise<boolean> =>
    (await replication?.isConfirmed()) !== false && (await conflictWatch.isOver());
  const publishers = (options.publishers ?? []).map(({ name }) => name);
  const isReported = (header: Header): boolean => options.results === undefined || reports.isDelivered(header);
  const published = (): ReturnType<typeof takenBy> => takenBy(queue.docs, publishers);
  const housekeeping = new Housekeeping({
    ...transfer,
    failures,
    reports,
    quarantine,
    orphans: new Orphans({ queue, quarantine, tabLock, closed, breathe }),
    breathe,
    rememberMs: (options.rememberDays ?? 30) * 86_400_000,
    isReported,
    published,
    isConfirmed,
    forgot: calls.forgot,
  });

  const pendingFile = new PendingFile({
    ...environment,
    queue,
    hashes,
    failures,
    reports,
    quarantine,
    edits,
    claims,
    actions,
    closed,
    local: documentStore,
    name: options.name,
    payloadOf,
    planRequestOf,
    isReported,
    published,
    unsent: () => replication?.unsentIds() ?? Promise.resolve(new Set()),
    claim: async (user) => {
      session.expect(await queue.store.claim(user));
    },
  });

  return {
    options,
    environment,
    closed,
    actions,
    plans,
    lease,
    payloadOf,
    planRequestOf,
    queueStore,
    documentStore,
    queue,
    failures,
    edits,
    isConfirmed,
    isReported,
    published,
    reports,
    control,
    retries,
    endings,
    tabLock,
    claims,
    quarantine,
    quarantineControl,
    refused,
    failureControl,
    resending,
    policy,
    scheduler,
    session,
    gate,
    requests,
    databases,
    indexes,
    events,
    pageEvents,
    planning,
    runner,
    writers,
    transfer,
    replication,
    openConflicts,
    conflictWatch,
    housekeeping,
    pendingFile,
  };
}
