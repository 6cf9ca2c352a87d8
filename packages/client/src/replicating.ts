import type { ForgetReceipt } from './model/client.js';
import type { Seen } from './sync/seen.js';
import type { ClientStatus } from './model/states.js';

/**
 * How local documents and the server's come together, whoever does it: the SDK (`replication.ts`), or the app itself
 * (`external-replication.ts`). Whoever asks whether the server has something asks here.
 */
export interface Replicating {
  /** Takes up what the last run of this store left. Only in the tab that leads. */
  resume(storeId: string): Promise<void>;
  /** There may be something to do. */
  poke(): void;
  /** Local documents were written. */
  pushNow(): void;
  /** The server may have news. */
  pullNow(): void;
  /** Whether the server has all that it can have now, but for single documents that stayed behind. */
  isPushed(): boolean;
  /** Resolves when the step that is under way is taken, or it rests. False: it waits, and there is more to come. */
  pushStep(): Promise<boolean>;
  /** Lets documents leave this device. Rejects where someone else pushes. */
  forget(ids: readonly string[]): Promise<ForgetReceipt>;
  /** Sends documents once more that the server has refused, as they are. Durable when it resolves. */
  sendAgain(ids: readonly string[]): Promise<void>;
  /** The app tells what its own replication was refused, and how far it is. Durable when it resolves. Rejects where nobody else replicates. */
  report(seen: Pick<Seen, 'denied' | 'isPushed'>): Promise<void>;
  /** Another tab may have said what is to be sent once more. */
  reread(): void;
  /** Whether the server has, or has refused for good, every revision that is stored here now, by what is known. */
  isConfirmed(): Promise<boolean>;
  /** Local changes that the server may not have, by what is in memory: too many rather than too few. */
  unconfirmed(): number;
  /** Ids of local documents with revisions that the server may not have, by what is stored. */
  unsentIds(): Promise<ReadonlySet<string>>;
  status(): Pick<ClientStatus, 'push' | 'pull'>;
  /** Resolves when nothing runs any more. */
  close(): Promise<void>;
}
