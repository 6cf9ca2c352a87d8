/*
 * npm run test:move [-- --contacts N] [--reports N] [--seed N] [--break NAME]: a health centre is moved in a real Chromium,
 * planned offline, killed three times, the server down twice; then each lineage must be right on device and server, and
 * the same request again must change nothing.
 */
import { runProof } from '../proof.js';
import type { LongTask } from './messages.js';
import { mistakes, move } from './move.js';

await runProof({
  name: 'test:move',
  numbers: {
    contacts: { default: 3000, help: 'contacts below the health centre that moves' },
    reports: { default: 5000, help: 'reports that they have sent' },
  },
  mistakes,
  prove: async (asked) => {
    const { ends, wrong, kills, outages, longTasks, village } = await move(asked);
    const [bulk] = ends[0].bulks;
    const unchanged = village.docs.length - village.operations.size;
    return {
      wrong,
      notes: longTaskLines(longTasks),
      good:
        `${String(bulk?.applied)} operations on ${String(village.operations.size)} documents, each applied once; ` +
        `${String(unchanged)} documents elsewhere unchanged; ${String(kills)} kills, ${String(outages)} outages; ` +
        `0 wrong lineages on device and server; a second run changed nothing.`,
    };
  },
});

/** Tasks over 50 ms by what the client was at. */
function longTaskLines(tasks: readonly LongTask[]): string[] {
  const stages = new Set(tasks.map(({ during }) => during));
  return [...stages].map((stage) => {
    const took = tasks.filter(({ during }) => during === stage).map((task) => task.took);
    return `tasks over 50 ms, ${stage}: ${String(took.length)}, the longest ${Math.max(...took).toFixed(0)} ms`;
  });
}
