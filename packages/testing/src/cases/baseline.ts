import type { Database } from './database.js';
import type { World } from './world.js';

interface Before {
  readonly rev: string | undefined;
  readonly revisions: ReadonlySet<string>;
}

/** What one database held before the steps. */
export class DatabaseBaseline {
  private constructor(
    readonly database: Database,
    private readonly before: ReadonlyMap<string, Before>,
    readonly live: ReadonlySet<string>,
  ) {}

  static async take(database: Database, ids: readonly string[]): Promise<DatabaseBaseline> {
    const before = new Map<string, Before>();
    for (const id of ids) {
      const winner = await database.winner(id);
      before.set(id, { rev: winner?.rev, revisions: winner === undefined ? new Set() : await database.revisions(id) });
    }
    return new DatabaseBaseline(database, before, new Set(await database.liveIds()));
  }

  /** How many revisions a document got since, on all its branches. */
  async revisionsAdded(id: string): Promise<number> {
    const winner = await this.database.winner(id);
    if (winner === undefined) return 0;
    const before = this.before.get(id)?.revisions ?? new Set();
    return [...(await this.database.revisions(id))].filter((rev) => !before.has(rev)).length;
  }

  async isUntouched(id: string): Promise<boolean> {
    return (await this.database.winner(id))?.rev === this.before.get(id)?.rev;
  }

  /** Ids that were live before and are no longer. */
  async deleted(): Promise<readonly string[]> {
    const now = new Set(await this.database.liveIds());
    return [...this.live].filter((id) => !now.has(id)).sort();
  }
}

/** The local database and the server's main one, as they were before the steps. */
export interface Baseline {
  readonly local: DatabaseBaseline;
  readonly server: DatabaseBaseline | undefined;
}

export async function takeBaseline(world: World): Promise<Baseline> {
  const ids = world.idsOfTheCase.filter((id) => !id.startsWith('_'));
  return {
    local: await DatabaseBaseline.take(world.local, ids),
    server: world.main === undefined ? undefined : await DatabaseBaseline.take(world.main, ids),
  };
}
