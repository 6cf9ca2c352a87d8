import type { ClientStatus } from '@afield/client';
import { backUp, restore } from './backup.js';
import type { HttpDatabase } from './database.js';
import type { JsonObject } from './json.js';
import type { Case } from './read.js';

/** The server's main database is put back as it was before the steps, from a backup: once, at its step or its point. */
export class Rollback {
  #backup: readonly JsonObject[] | undefined;
  /** Pulls before it happened: until there was another one, the device cannot know. */
  #pulls: number | undefined;

  constructor(
    private readonly given: Case,
    private readonly main: HttpDatabase | undefined,
  ) {}

  /** To be called when the documents of the case are written. */
  async prepare(): Promise<void> {
    if (this.main !== undefined && this.#fault() !== undefined) this.#backup = await backUp(this.main.ask);
  }

  /** At this point, unless a step stands for it. */
  async atPoint(point: string, status: ClientStatus | undefined): Promise<void> {
    const hasStep = this.given.steps.some((step) => step.do === 'server-rollback');
    if (!hasStep && this.#fault()?.when.point === point) await this.happen(status);
  }

  async happen(status: ClientStatus | undefined): Promise<void> {
    const backup = this.#backup;
    if (this.main === undefined || backup === undefined) return;
    this.#backup = undefined;
    this.#pulls = status?.pull.attempts ?? 0;
    await restore(this.main.ask, backup);
  }

  /** Whether a device that replicates has heard of the server since. */
  isSeen(status: ClientStatus | undefined): boolean {
    const { state, attempts } = status?.pull ?? { state: 'off', attempts: 0 };
    return this.#pulls === undefined || state === 'off' || attempts > this.#pulls;
  }

  #fault(): Extract<Case['faults'][number], { at: 'storage' }> | undefined {
    return this.given.faults.find((fault) => fault.at === 'storage' && fault.do.server_rollback !== undefined) as
      Extract<Case['faults'][number], { at: 'storage' }> | undefined;
  }
}
