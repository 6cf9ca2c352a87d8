import { FakeLocks } from '@afield/testing';
import { MortalProcess, type Await, type Breaking, type Death } from './mortal-process.js';
import { App, type Scenario } from './scenario.js';
import { CrashWorld, type Target, type Violation } from './world.js';

/** One run of a scenario with its deaths. */
export interface Run {
  readonly deaths: readonly Death[];
  /** Whether all of them came: up to a death a run is nearly always, but not surely, like the one that found the point. */
  readonly isReached: boolean;
  readonly violations: readonly Violation[];
  readonly checks: number;
  /** Where the first process, and the one after it, waited for something outside. */
  readonly awaits: readonly (readonly Await[])[];
  readonly trace: readonly string[];
}

/**
 * Runs a scenario once. Each death ends one process; the next one is started on the same stores, at another time of the
 * wall clock. When no death is left, everything comes to its end, and the invariants are asked.
 */
export async function runOnce(
  scenario: Scenario,
  target: Target,
  deaths: readonly Death[],
  breaking?: Breaking,
): Promise<Run> {
  const world = new CrashWorld(target, scenario.options, breaking);
  world.begin(scenario.documents);
  scenario.prepare?.(world);
  const play = new Play(scenario, world);
  try {
    await play.run(deaths);
  } catch (error) {
    world.violated('comes-to-its-end', error instanceof Error ? error.message : 'threw');
  }
  play.end();
  const { violations, checks, trace } = world;
  return { deaths, isReached: world.trace.length === deaths.length, violations, checks, trace, awaits: play.awaits };
}

class Play {
  /** Of each process, up to the moment when it had nothing more to do. */
  readonly awaits: (readonly Await[])[] = [];
  readonly #processes: MortalProcess[] = [];
  readonly #scenario: Scenario;
  readonly #world: CrashWorld;
  /** Steps that came to their end. */
  #done = 0;

  constructor(scenario: Scenario, world: CrashWorld) {
    this.#scenario = scenario;
    this.#world = world;
  }

  async run(deaths: readonly Death[]): Promise<void> {
    const world = this.#world;
    for (const death of deaths) {
      const process = this.#start(death);
      await world.until(
        Promise.race([this.#steps(process), process.ended]),
        'the end of the scenario or of the process',
      );
      if (death.how === 'freeze') await this.#takeOver(process);
      process.kill();
      this.awaits.push([...process.awaits]);
      // Nothing may rest on the wall clock: it is set back by two days, or forward by a year.
      world.clock.jumpWall(death.at % 2 === 0 ? -172_800_000 : 31_536_000_000);
    }
    const last = this.#start();
    await world.until(this.#steps(last), 'the end of all work');
    this.awaits.push([...last.awaits]);
    await world.until(last.client.close(), 'the end of close()');
    last.kill();
    world.ask((invariant) => invariant.settled?.(world));
    for (const message of this.#scenario.expected(world)) world.violated('expected', message);
    await this.#startsAgainForNothing();
  }

  end(): void {
    for (const process of this.#processes) process.kill();
  }

  #start(death?: Death, locks?: FakeLocks): MortalProcess {
    const process = new MortalProcess(this.#world, death, locks);
    this.#processes.push(process);
    return process;
  }

  async #steps(process: MortalProcess): Promise<void> {
    const app = new App(process.client, this.#world, () => process.alive);
    while (this.#done < this.#scenario.steps.length) {
      const step = this.#done;
      await this.#scenario.steps[step]?.(app);
      if (!process.alive) return;
      this.#done = Math.max(this.#done, step + 1);
    }
    await app.settled();
  }

  /** Another tab works while this one stands still, without its lock; then this one wakes, late. */
  async #takeOver(frozen: MortalProcess): Promise<void> {
    const world = this.#world;
    const other = this.#start(undefined, new FakeLocks());
    const app = new App(other.client, world, () => other.alive);
    await world.until(
      (async () => {
        await this.#scenario.meanwhile?.(app);
        await app.settled();
      })(),
      'the end of what another tab does',
    );
    frozen.thaw();
    await world.clock.advance(600_000);
    await world.until(other.client.close(), 'the end of close()');
    other.kill();
  }

  /** When all is done, a start changes nothing: not the documents, not the server. */
  async #startsAgainForNothing(): Promise<void> {
    const world = this.#world;
    const counts = (): string => [world.documents, world.results, world.events].map(({ sequence }) => sequence).join();
    const before = counts();
    const again = this.#start();
    await world.until(new App(again.client, world, () => again.alive).settled(), 'rest after a start for nothing');
    again.kill();
    if (counts() !== before) {
      const message = `a start when all is done has written something: ${before} became ${counts()}`;
      world.violated('running-again-converges', message);
    }
  }
}
