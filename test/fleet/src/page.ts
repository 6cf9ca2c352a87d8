import { figuresOf, minutesOf, type Figures } from './figures.js';
import type { FleetRun } from './fleet.js';

/** The page that says what was simulated and what came out. Markdown; `spread` is with jitter, `exact` without. */
export function page(spread: FleetRun, exact: FleetRun): string {
  const { clients, jitter, outageMinutes, watchedMinutes, seed } = spread.options;
  const [withJitter, without] = [figuresOf(spread), figuresOf(exact)];
  const row = (name: string, value: (figures: Figures) => string): string =>
    `| ${name} | ${value(without)} | ${value(withJitter)} |`;
  const exactMinutes = minutesOf(exact);
  const rows = minutesOf(spread).flatMap((one, at) => {
    const other = exactMinutes[at];
    if (other === undefined || one.total + other.total === 0) return [];
    return [`| ${String(one.minute)} | ${[other.total, other.peak, one.total, one.peak].map(shown).join(' | ')} |`];
  });
  return `# A fleet after an outage

<!-- Written by \`npm run simulate:fleet\`. -->

${shown(clients)} clients meet an outage of ${String(outageMinutes)} minutes in the same second. Does jitter (R2) keep them from coming back
all at once?

![Requests a second over time, without and with jitter](fleet.svg)

The scale of the picture is logarithmic: each line is ten times the one below.

| requests in one second | without jitter | with jitter (0 to ${String(jitter * 100)} %) |
| --- | --- | --- |
${row('the first second', ({ firstSecond }) => shown(firstSecond))}
${row('peak while the server is away, from the second after', ({ peakAway }) => shown(peakAway))}
${row('peak after the server is back', ({ peakBack }) => shown(peakBack))}
${row('all requests together', ({ total }) => shown(total))}
${row('clients that are done', ({ delivered }) => shown(delivered))}
${row('the last one, after the server is back', ({ lastDeliveredAfter }) => seconds(lastDeliveredAfter))}

Each client has one bulk operation. When all are done, each has made the same number of requests with and without jitter:
jitter costs no request, only time.

**The first second is the same, and jitter cannot help there.** It holds the first try of each client and its retry, which
R2 asks for at once. Here they meet because everyone queues something in that second.

**The rest is what jitter is for.** The command fails when one of these does not hold:

- Each of the two peaks is with jitter at most a third of what it is without.
- Everything is delivered at most two steps of the ramp after the server is back: 10 minutes, and 12 with jitter.

## What was simulated

- The clients are the SDK as it is (\`createClient\`), on stores in memory and a server in memory, all on one fake clock.
  Nothing of the rules is written a second time for the simulation.
- Each queues one \`set-parent\` for the target \`server\` at a random moment of the first second. Two requests do it: a read
  and a write. Try and request are the same while the server is away.
- While it is away every request fails at once, as when nothing listens at the address. A request takes no time.
- Push and pull are off: they have waits of their own, with the same ramp and the same jitter.
- No event comes. When the network of all devices comes back in one moment, each of them tries within one second (R14),
  whatever the jitter of the ramp. Then the server's word counts: \`Retry-After\` (R13).
- ${String(outageMinutes)} minutes is itself a moment of the ramp without jitter. So without jitter all come in the very first second after
  the outage; with another length they would come up to five minutes later, again in one second.
- Seed ${String(seed)}, ${String(watchedMinutes)} minutes. The same seed brings the same figures.

## Minute by minute

Minutes without a request are left out. The peak is the busiest second of the minute.

| minute | without jitter | peak | with jitter | peak |
| ---: | ---: | ---: | ---: | ---: |
${rows.join('\n')}
`;
}

const shown = (count: number): string => count.toLocaleString('en');

const seconds = (value: number | undefined): string =>
  value === undefined ? 'not all are done' : `${shown(Math.ceil(value))} s`;
