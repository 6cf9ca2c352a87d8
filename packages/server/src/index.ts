export { runCommandLine } from './cli.js';
export { exitCodes, type World } from './command.js';
export { databaseOfUser, deviceRole, supervisorRole, userOfDatabase, type Layout } from './databases.js';
export { ServerCommandError, type ServerCommandErrorCode } from './errors.js';
export { validationText, type Purpose } from './setup/validation-text.js';
