import { Arguments } from '../arguments.js';
import type { Command } from '../command.js';
import { ServerCommandError } from '../errors.js';
import { devicesIn, type ListedDevice } from '../read/devices.js';
import { durationMs } from '../read/times.js';
import { list, listHelp, listOptions } from './listing.js';

const help = `afield-server devices --url URL [options]: lists devices, when they were last heard of, and what is unsent there

  --url URL           address of CouchDB, such as http://127.0.0.1:5984; no name or password in it
  --silent-for TIME   not heard of for so long: 7d, 12h, 30m
  --user NAME         of this user
${listHelp}`;

const options = { ...listOptions, 'silent-for': { type: 'string' } } as const;

const columns = [
  'store',
  'user',
  'appVersion',
  'seenAt',
  'silentS',
  'pending',
  'failed',
  'stopped',
  'quarantined',
  'unpublished',
  'unreported',
  'unconfirmed',
  'oldestUnsentAt',
  'oldestUnsentS',
  'drained',
  'asOf',
  'lastSequence',
] as const satisfies readonly (keyof ListedDevice)[];

/** `afield-server devices` */
export const devicesCommand: Command = {
  name: 'devices',
  summary: 'lists devices, when they were last heard of, and what is unsent there',
  help,
  run: (given, world) => {
    const values = new Arguments(given, options);
    const text = values.text('silent-for');
    const silentMs = text === undefined ? undefined : durationMs(text);
    if (text !== undefined && silentMs === undefined) {
      throw new ServerCommandError('usage', '--silent-for takes a duration such as 7d, 12h or 30m.');
    }
    const now = world.now();
    const wishes = { now, seenBefore: silentMs === undefined ? undefined : now - silentMs, user: values.text('user') };
    return list(values, world, columns, (couch, source, tally) => devicesIn(couch, source, wishes, tally));
  },
};
