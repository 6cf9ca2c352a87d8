export { FakeClock } from './fake-clock.js';
export { FakeConnectivity } from './fake-connectivity.js';
export { FakeChannels } from './fake-channels.js';
export { FakePresence } from './fake-presence.js';
export { FakeLocks, FakeTabLocks } from './fake-locks.js';
export { InFlight } from './in-flight.js';
export {
  faultyFetch,
  type Engine,
  type FaultyFetch,
  type FetchCondition,
  type FetchFault,
  type FetchRule,
  type SeenFetch,
} from './faulty-fetch.js';
export { faultyStore, type FaultyStore, type SeenCall, type StoreCondition, type StoreRule } from './faulty-store.js';
export {
  faultyIndexedDB,
  type FaultyIndexedDB,
  type IndexedDBCondition,
  type IndexedDBRule,
  type SeenIndexedDBCall,
} from './faulty-indexeddb.js';
export type { IndexedDBFault, IndexedDBRejection } from './indexeddb/faults.js';
export { memoryIndexedDB } from './indexeddb/memory-indexeddb.js';
export { trackedIndexedDB } from './indexeddb/tracked.js';
export type { IndexedDBCall } from './indexeddb/layer.js';
export { FakeDevice, NothingHappensError, type FakeDeviceOptions } from './fake-device.js';
export { FakeProcess, type ProcessHooks, type ProcessParts, type ProcessRequest } from './fake-process.js';
export {
  crashPoints,
  CrashPointError,
  type CrashOptions,
  type CrashPoint,
  type CrashProcess,
  type CrashReport,
} from './crash-points.js';
export { actionLaws, type ActionLawsOptions } from './laws/action-laws.js';
export { BrokenLawError, laws, type Law } from './laws/broken-law-error.js';
export { InvalidSampleError, type ActionSample, type BatchSample, type SingleSample } from './laws/sample.js';
export { wrongLineages, type WrongLineage } from './lineage-check.js';
export { publisherLaws, type PublisherLawsOptions } from './publisher-laws/publisher-laws.js';
export { BrokenPublisherLawError, publisherLawNames, type PublisherLaw } from './publisher-laws/laws.js';
export { sampleEvent } from './publisher-laws/sample-events.js';
export type { PublisherWorld } from './publisher-laws/world.js';
export type { ActionWorld } from './laws/trial.js';
export type { WatchedCall } from './watched-pouch.js';
export type { StoreError, StoreFault } from './store-faults.js';
export type { Turn } from './rules.js';
export { CaseFileError } from './cases/case-file-error.js';
export { readCases, type Case } from './cases/read.js';
export { runCase, type CaseReport } from './cases/run.js';
export { startCaseServer, type CaseServer } from './cases/server.js';
export { MemoryPouch } from './cases/memory-pouch.js';
export { MemoryServer, type MemoryServerOptions } from './memory-server.js';
export type { MemoryRequest } from './memory/answers.js';
export { MemoryStore, type AroundStore, type StoreCall } from './memory-store.js';
export { MemoryDatabase, Refusal, type StoredDocument, type Validate } from './memory/memory-database.js';
export type { RevisionTree, Revision } from './memory/revision-tree.js';
