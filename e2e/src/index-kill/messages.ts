/* What the page does, and what it and the one who runs it say to each other. */

/** Names the client whose browser is killed, and its database. */
export const killedName = 'killed';
/** Names the client that builds the same index without being disturbed, over the same documents. */
export const undisturbedName = 'undisturbed';

/** Mistakes of the page that must be noticed. */
export const mistakes = {
  'from-start': 'a build begins from the start in each life',
  'lost-row': 'a build passes over the first row of each life',
} as const;
export type Mistake = keyof typeof mistakes;

export interface Config {
  /** `write`: the documents; `build`: the index; `compare`: builds the undisturbed one, and tells the rows of both. */
  readonly task: 'write' | 'build' | 'compare';
  readonly documents: number;
  readonly mistake: Mistake | undefined;
}

export type Told =
  /** The page has begun; the last change of its documents has this sequence. */
  | { readonly alive: true; readonly sequence: number }
  /** The source has brought these documents; the index gets them after the answer. */
  | { readonly read: readonly string[]; readonly by: string }
  | { readonly done: Config['task'] }
  /** All rows of an index, in its order. */
  | { readonly rows: readonly string[]; readonly of: string }
  | { readonly problem: string };
