import type { DefaultSecurity } from './security.js';

/** What the server's thread is started with. */
export interface ServerOrder {
  readonly port: number;
  readonly folder: string;
  readonly admin: { readonly username: string; readonly password: string };
  readonly maxBodyBytes: number;
  readonly defaultSecurity: DefaultSecurity;
}

/** What the server's thread reports. */
export type ServerReport =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'failed'; readonly code?: string | undefined; readonly reason: string }
  | { readonly type: 'problem'; readonly reason: string };
