export { DevServerError, type DevServerErrorCode } from './errors.js';
export { startDevServer, type Credentials, type DevServer, type DevServerOptions } from './server/dev-server.js';
export type { DefaultSecurity, SecurityObject } from './server/security.js';
export {
  startFaultProxy,
  type FaultProxy,
  type FaultProxyOptions,
  type Forward,
  type Interceptor,
  type Outage,
} from './proxy/fault-proxy.js';
export type { Answer, AnswerHeaders, HttpAnswer, UpstreamAnswer } from './proxy/answer.js';
export type { ProxyRequest } from './proxy/request.js';
export type { LoggedRequest } from './proxy/request-log.js';
export type { RequestChange } from './proxy/upstream.js';
export { InvalidRuleError, type ActiveRule, type FaultAction, type FaultRule, type RuleIssue } from './proxy/rules.js';
export { captivePortalAnswer } from './proxy/captive-portal.js';
export {
  temporaryDatabases,
  type TemporaryDatabase,
  type TemporaryDatabaseOptions,
  type TemporaryDatabases,
} from './temporary-databases.js';
export { temporaryFolder, type TemporaryFolder } from './temporary-folder.js';
export { serverUnderTest, type ServerSoftware, type ServerUnderTest } from './server-under-test.js';
