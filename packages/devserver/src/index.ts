export { DevServerError, type DevServerErrorCode } from './errors.js';
export { startDevServer, type Credentials, type DevServer, type DevServerOptions } from './server/dev-server.js';
export type { DefaultSecurity, SecurityObject } from './server/security.js';
