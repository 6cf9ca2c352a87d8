export { FakeClock } from './fake-clock.js';
export { FakeConnectivity } from './fake-connectivity.js';
export { FakeChannels } from './fake-channels.js';
export { FakeLocks, FakeTabLocks } from './fake-locks.js';
export { InFlight } from './in-flight.js';
export { CaseFileError } from './cases/case-file-error.js';
export { readCases, type Case } from './cases/read.js';
export { runCase, type CaseReport } from './cases/run.js';
export { startCaseServer, type CaseServer } from './cases/server.js';
