import type { Expectation } from './schema.js';
import type { World } from './world.js';

/** What is known of events at the end of a run. */
export type SeenEvents = Pick<World, 'publications' | 'observation' | 'queued' | 'databases'>;

/** Compares what came to the database of events with what a case expects of it; answers with what is wrong. */
export async function checkEvents(
  { per_key: perKey = {}, distinct_ids_per_key: distinct, order = [] }: NonNullable<Expectation['events']>,
  world: SeenEvents,
): Promise<readonly string[]> {
  const { publications, observation } = world;
  const wrong: string[] = [];
  for (const [key, [least, most]] of Object.entries(perKey)) {
    const times = publications.times(key);
    if (times < least || times > most) {
      wrong.push(
        `events per_key ${key}: expected ${String(least)} to ${String(most)}, but it was published ${String(times)} times`,
      );
    }
  }
  if (distinct !== undefined) {
    // What is done has an event; what failed has none.
    for (const key of new Set([...observation.doneKeys, ...publications.all.map((one) => one.key)])) {
      const { size } = publications.ids(key);
      if (size !== distinct)
        wrong.push(`events distinct_ids_per_key ${key}: expected ${String(distinct)}, but there are ${String(size)}`);
    }
  }
  for (const [first, second] of order) {
    const [before, after] = [publications.firstOf(first), publications.firstOf(second)];
    if (before === undefined || after === undefined) {
      wrong.push(`events order: ${before === undefined ? first : second} was never published`);
    } else if (before >= after) wrong.push(`events order: ${second} was published before ${first}`);
  }
  return [...wrong, ...strangers(world), ...(await stored(world))];
}

/** Events of keys that nobody queued. */
function strangers({ publications, queued }: SeenEvents): readonly string[] {
  const known = new Set([...queued.values()].flat());
  return [...new Set(publications.all.map(({ key }) => key))]
    .filter((key) => !known.has(key))
    .map((key) => `events: the key ${key} is of no operation`);
}

/** Who reads the database finds what was published, and nothing else. */
async function stored({ databases, publications }: SeenEvents): Promise<readonly string[]> {
  const there = new Set(await databases.events.liveIds());
  const came = new Set(publications.all.map(({ id }) => id));
  return [
    ...[...came].filter((id) => !there.has(id)).map((id) => `events: ${id} was published, but is not there`),
    ...[...there].filter((id) => !came.has(id)).map((id) => `events: ${id} is there, but was never published`),
  ];
}
