import type { Failures } from './failures.js';
import type { Queue } from './queue.js';
import type { Reports } from './reports.js';
import type { Retried, Retries } from './retries.js';

/**
 * What ended the process each time gets another chance with another version of the app (R16). Answers whether anything
 * was queued anew.
 */
export async function retryCrashed(
  appVersion: string | undefined,
  { queue, failures, reports, retries }: { queue: Queue; failures: Failures; reports: Reports; retries: Retries },
): Promise<boolean> {
  if (appVersion === undefined || !queue.headers.all().some((header) => reports.openFailures(header) > 0)) return false;
  await failures.load();
  const crashed = (): Retried[] =>
    failures
      .matching({ code: 'crashed' })
      .flatMap(({ stored }) => (stored.app === appVersion ? [] : [{ failure: stored }]));
  if (crashed().length === 0) return false;
  await retries.retry(crashed, undefined);
  return true;
}
