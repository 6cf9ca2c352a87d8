import { existsSync } from 'node:fs';

const usual = '/usr/bin/chromium';

/** Path of the Chromium that is started and killed: `AFIELD_CHROMIUM`, else the system's. Throws when there is none. */
export function chromiumPath(): string {
  const path = process.env['AFIELD_CHROMIUM'] ?? (existsSync(usual) ? usual : undefined);
  if (path === undefined) throw new Error('No Chromium: set AFIELD_CHROMIUM to its path.');
  return path;
}
