import type { CampaignReport } from './campaign.js';

/** One line about a scenario: crash points, runs, invariants, violations. */
export function lineOf({
  scenario,
  target,
  points,
  runs,
  missed,
  pairs,
  checks,
  invariants,
  violated,
}: CampaignReport): string {
  const ofPairs = pairs.of === 0 ? '' : `, ${String(pairs.run)} of ${String(pairs.of)} pairs`;
  return [
    scenario.padEnd(22),
    target.padEnd(7),
    `${String(points).padStart(4)} crash points,`,
    `${String(runs).padStart(5)} runs${ofPairs},`,
    ...(missed === 0 ? [] : [`${String(missed)} not reached,`]),
    `${String(invariants.length)} invariants asked ${String(checks)} times,`,
    `${String(violated.length)} violations`,
  ].join(' ');
}

/** What was violated, each once, with the deaths of the first run that did. */
export function violationsOf({ violated }: CampaignReport): string[] {
  const lines = new Map<string, string>();
  for (const { violations, trace } of violated) {
    for (const { invariant, message } of violations) {
      const where = trace.length === 0 ? 'without any death' : trace.join('; ');
      if (!lines.has(invariant)) lines.set(invariant, `${invariant}: ${message} (${where})`);
    }
  }
  return [...lines.values()];
}
