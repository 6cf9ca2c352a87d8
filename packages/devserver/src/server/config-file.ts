import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CouchFiles } from './express-pouchdb.js';
import type { ServerOrder } from './messages.js';

const iterations = 10;

/** A sign-in with a cookie holds this long, in seconds; express-pouchdb renews it with every request. */
const sessionSeconds = 24 * 3600;

/**
 * Writes express-pouchdb's configuration. The password is stored as a hash: express-pouchdb would hash a plain one
 * only after it has started, and everyone is an admin until then.
 */
export function writeConfigFile({ folder, admin, maxBodyBytes }: ServerOrder): CouchFiles {
  const files = { configPath: join(folder, 'config.json'), logPath: join(folder, 'log.txt') };
  const config = {
    admins: { [admin.username]: hashed(admin.password) },
    couchdb: { max_document_size: maxBodyBytes },
    couch_httpd_auth: { timeout: sessionSeconds },
    log: { file: files.logPath, level: 'none' },
  };
  writeFileSync(files.configPath, JSON.stringify(config), { mode: 0o600 });
  return files;
}

/** A password in the form of CouchDB's own configuration file. */
function hashed(password: string): string {
  const salt = randomBytes(16).toString('hex');
  const key = pbkdf2Sync(password, salt, iterations, 20, 'sha1').toString('hex');
  return `-pbkdf2-${key},${salt},${String(iterations)}`;
}
