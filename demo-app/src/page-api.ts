import type { ActionPart, Client, EnqueueReceipt, Target } from '@afield/client';
import type { ImportSummary } from './import-documents.js';
import type { SourceFile } from './csv/table.js';

/** What the page offers to a driver such as `npm start -- --once`, beside its buttons. */
export interface DemoApi {
  readonly client: Client;
  importFiles(files: readonly SourceFile[]): Promise<ImportSummary>;
  planMove(ids: readonly string[], targetId: string): readonly ActionPart[];
  move(ids: readonly string[], targetId: string, target: Target): Promise<EnqueueReceipt>;
}

declare global {
  interface Window {
    /** Set when the page is ready. */
    afieldDemo?: DemoApi;
  }
}
