import type {
  BulkOperationStatus,
  Client,
  ClientOptions,
  ClientStatus,
  EnqueueRequest,
  PlanRequest,
} from '@afield/client';
import { filter, firstValueFrom } from 'rxjs';
import type { Await } from './mortal-process.js';
import type { CrashWorld, Target } from './world.js';

/** The app in one process. What it is told in a process that dies right then, no one has heard. */
export class App {
  constructor(
    readonly client: Client,
    readonly world: CrashWorld,
    private readonly isAlive: () => boolean,
  ) {}

  /** Queues it; an app that was not told asks again, with the same key. */
  async queue(request: (EnqueueRequest | PlanRequest) & { readonly key: string }): Promise<void> {
    await this.client.enqueue(request);
    if (this.isAlive() && !this.world.confirmed.includes(request.key)) this.world.confirm(request.key);
  }

  /** Delivers what was queued before: it must be known. */
  async deliverAgain(request: EnqueueRequest & { readonly key: string }): Promise<void> {
    const { duplicate } = await this.client.enqueue(request);
    if (this.isAlive() && !duplicate) this.world.violated('one-for-each-key', `${request.key} counts as new again`);
  }

  /** Delivers a known key with other content: it must be refused. */
  async deliverConflicting(request: EnqueueRequest & { readonly key: string }): Promise<void> {
    const code = await this.client.enqueue(request).then(
      () => 'a success',
      (error: unknown) => (error as { code?: unknown }).code,
    );
    if (!this.isAlive() || code === 'idempotency_conflict') return;
    this.world.violated('one-for-each-key', `${request.key} with other content was answered with ${String(code)}`);
  }

  async find(key: string): Promise<BulkOperationStatus | undefined> {
    await this.client.storeId;
    await Promise.resolve();
    const all = await firstValueFrom(this.client.bulkOperations$);
    return all.find((one) => one.key === key);
  }

  /** Cancels it, unless it came to its end before. */
  async cancel(key: string): Promise<void> {
    const found = await this.find(key);
    const isCancelled = await this.client.cancel(found?.id ?? '').then(
      () => true,
      (error: unknown) => {
        if ((error as { code?: unknown }).code !== 'already_ended') throw error;
        return false;
      },
    );
    if (this.isAlive() && isCancelled) this.world.cancelled.add(key);
  }

  /** Waits until the bulk operation is so. */
  async becomes(key: string, isSo: (one: BulkOperationStatus) => boolean): Promise<void> {
    await firstValueFrom(
      this.client.bulkOperations$.pipe(filter((all) => all.some((one) => one.key === key && isSo(one)))),
    );
  }

  /** Everything has its outcome, and the server knows of it. */
  async settled(): Promise<void> {
    await this.client.start();
    const isSettled = (status: ClientStatus): boolean => this.world.isSettled(status);
    do {
      await firstValueFrom(this.client.status$.pipe(filter(isSettled)));
      await this.world.rest();
    } while (!isSettled(await firstValueFrom(this.client.status$)));
  }
}

/** What an app does while it may die. */
export interface Scenario {
  readonly name: string;
  /** The lines of the specification that it is about. */
  readonly lines: string;
  readonly says: string;
  /** Where its operations take effect; default: once on the device, once at the server. */
  readonly targets?: readonly Target[];
  /** How the process ends at a point. Default: `kill`. */
  readonly how?: 'kill' | 'freeze';
  /** Whether it may end there; default: anywhere. */
  readonly mayEnd?: (one: Await, when: 'before' | 'after') => boolean;
  readonly options?: Partial<ClientOptions>;
  /** On the server and on the device before anything begins. */
  readonly documents: readonly { readonly _id: string; readonly [field: string]: unknown }[];
  readonly prepare?: (world: CrashWorld) => void;
  /** What the app does, one after another; after a restart from the first one that did not come to its end. */
  readonly steps: readonly ((app: App) => Promise<unknown>)[];
  /** What another tab does while the process is frozen. */
  readonly meanwhile?: (app: App) => Promise<unknown>;
  /** What must be in the end, beside the invariants. */
  readonly expected: (world: CrashWorld) => readonly string[];
}
