import { Arguments } from '../arguments.js';
import type { Command } from '../command.js';
import { failuresIn, type FailureWishes, type ListedFailure } from '../read/failures.js';
import { timeMs } from '../read/times.js';
import { list, listHelp, listOptions } from './listing.js';

const help = `afield-server failures --url URL [options]: lists operations that failed for good, of all devices

  --url URL           address of CouchDB, such as http://127.0.0.1:5984; no name or password in it
  --since TIME        that failed then or later: 2026-11-01, 2026-11-01T08:00+02:00 (UTC without an offset), or 7d, 12h, 30m ago
  --until TIME        that failed before
  --code CODE         with this code; may be given more than once
  --device STORE      of this device (the name of its store)
  --user NAME         of this user
  --resolved          those too that a person has retried or discarded since then
${listHelp}`;

const options = {
  ...listOptions,
  since: { type: 'string' },
  until: { type: 'string' },
  code: { type: 'string', multiple: true },
  device: { type: 'string' },
  resolved: { type: 'boolean' },
} as const;

const columns = [
  'at',
  'store',
  'user',
  'bulkOperation',
  'sequence',
  'index',
  'id',
  'action',
  'code',
  'fields',
  'mayHaveBeenApplied',
  'refused',
  'app',
  'resolution',
  'resolvedAt',
  'reason',
  'content',
  'withheld',
] as const satisfies readonly (keyof ListedFailure)[];

/** `afield-server failures` */
export const failuresCommand: Command = {
  name: 'failures',
  summary: 'lists operations that failed for good, of all devices',
  help,
  run: (given, world) => {
    const values = new Arguments(given, options);
    const [since, until] = (['since', 'until'] as const).map((option) => {
      const text = values.text(option);
      return text === undefined ? undefined : timeMs(option, text, world.now());
    });
    const store = values.text('device');
    const user = values.text('user');
    const wishes: FailureWishes = {
      ...(since === undefined ? {} : { since }),
      ...(until === undefined ? {} : { until }),
      ...(store === undefined ? {} : { store }),
      ...(user === undefined ? {} : { user }),
      codes: values.texts('code'),
      withResolved: values.isSet('resolved'),
    };
    return list(values, world, columns, (couch, source, tally) => failuresIn(couch, source, wishes, tally));
  },
};
