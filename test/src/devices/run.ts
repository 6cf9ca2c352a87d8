import { MemoryPouch, MemoryStore } from '@afield/testing';
import { breaks, unbroken } from './breaks.js';
import { judgeWorld, type Verdict } from './judge.js';
import { quickServer, realServer } from './servers.js';
import { NoEndError, World, type Plan } from './world.js';

/** A plan, where it is carried out, and with which mistake. */
export interface Run {
  readonly plan: Plan;
  /** Stores and server in memory: quick, and the same for the same seed. */
  readonly quick: boolean;
  readonly break?: string | undefined;
}

/** Carries a plan out and judges what came of it. */
export async function runDevices({ plan, quick, break: name }: Run): Promise<Verdict & { trace: readonly string[] }> {
  const mistake = name === undefined ? undefined : breaks[name];
  if (name !== undefined && mistake === undefined) throw new Error(`There is no break ${name}.`);
  const real = quick ? undefined : await realServer();
  const storeOf = quick ? () => new MemoryStore().constructorFor() : () => MemoryPouch;
  const world = new World(plan, real ?? quickServer(), storeOf, mistake?.breaking ?? (() => unbroken));
  try {
    try {
      await world.run();
    } catch (error) {
      if (!(error instanceof NoEndError)) throw error;
      return { violations: [`it does not come to rest: ${error.message}`], counts: {}, trace: world.trace };
    }
    return { ...(await judgeWorld(world)), trace: world.trace };
  } finally {
    await world.dispose(!quick);
    await real?.close();
  }
}
