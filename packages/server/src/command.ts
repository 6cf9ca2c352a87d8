import type { Ask } from './credentials.js';

/** What a command has of the world; all of it is handed in. */
export interface World {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Undefined where nobody can be asked. */
  readonly ask: Ask | undefined;
  readonly fetch: typeof fetch;
  /** What the command brings; resolves when it may go on. */
  out(text: string): Promise<void>;
  /** A line for the person who runs it. */
  say(line: string): void;
  /** Milliseconds since 1970. */
  now(): number;
}

/** A command: its name, its help and what it does. Answers the exit code. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly help: string;
  run(given: readonly string[], world: World): Promise<number>;
}

/** Exit codes of all commands. */
export const exitCodes = { fine: 0, failed: 1, usage: 2, kept: 3 } as const;
