import type { Presence } from '../model/environment.js';

/**
 * Notes under `name` whether a person looks at this page, until the client is closed. Answers, when that is noted, with the
 * run (its lease) that ended while someone looked at it; undefined when none did (R16).
 */
export async function keepPresence(
  presence: Presence,
  name: string,
  lease: string,
  closed: AbortSignal,
): Promise<string | undefined> {
  const before = (await unlessClosed(presence.noted(name), closed))?.split(' ');
  if (closed.aborted) return undefined;
  const note = (): unknown =>
    presence.note(name, `${lease} ${presence.visible() && !closed.aborted ? 'visible' : 'hidden'}`);
  const noteAgain = (): void => {
    // What another tab has removed, because its person has logged out, does not come back (S7).
    if (presence.noted(name) !== undefined) void note();
  };
  const unsubscribe = presence.subscribe(noteAgain);
  closed.addEventListener('abort', () => {
    unsubscribe();
    noteAgain();
  });
  await unlessClosed(note(), closed);
  return before?.[1] === 'visible' ? before[0] : undefined;
}

/** A note of a run, as it is when nobody looks at its page any more. */
export function unseenNote(note: string): string {
  return `${note.split(' ')[0] ?? ''} hidden`;
}

/** The page of a worker may never answer. */
function unlessClosed<Value>(answer: Value | Promise<Value>, closed: AbortSignal): Promise<Value | undefined> {
  if (!(answer instanceof Promise)) return Promise.resolve(answer);
  const aborted = new Promise<undefined>((resolve) => {
    if (closed.aborted) resolve(undefined);
    closed.addEventListener('abort', () => {
      resolve(undefined);
    });
  });
  return Promise.race([answer, aborted]);
}
