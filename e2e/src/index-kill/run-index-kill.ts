/*
 * npm run test:index [-- --documents N] [--kills N] [--seed N] [--break NAME]: a Chromium with its profile on disk builds an
 * index and is killed (SIGKILL, all of its processes) at random moments; at the end the index must be the same as one that
 * was not disturbed, and each kill may have cost one batch that was read again.
 */
import { runProof } from '../proof.js';
import { indexKill } from './index-kill.js';
import { mistakes } from './messages.js';
import { readInAll } from './wrong-in-builds.js';

await runProof({
  name: 'test:index',
  numbers: {
    documents: { default: 50_000, help: 'documents in the database' },
    kills: { default: 10, help: 'kills while the index is built' },
  },
  mistakes,
  prove: async (asked) => {
    const { documents, kills } = asked;
    const { builds, wrong } = await indexKill(asked);
    const again = readInAll(builds.lives) - documents;
    return {
      wrong,
      good:
        `Killed ${String(kills)} times, the index has the same ${String(builds.rows.killed.length)} rows as an undisturbed one; ` +
        `${String(documents)} documents were read, ${String(again)} of them again (at most ${String(kills * 100)}).`,
    };
  },
});
