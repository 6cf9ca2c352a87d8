import type { Presence } from '../model/environment.js';

/**
 * Notes under `name` whether a person looks at this page, until the client is closed. Answers with the run (its lease)
 * that ended while someone looked at it; undefined when none did (R16).
 */
export function keepPresence(presence: Presence, name: string, lease: string, closed: AbortSignal): string | undefined {
  const before = presence.noted(name)?.split(' ');
  const note = (): void => {
    presence.note(name, `${lease} ${presence.visible() && !closed.aborted ? 'visible' : 'hidden'}`);
  };
  note();
  const unsubscribe = presence.subscribe(note);
  closed.addEventListener('abort', () => {
    unsubscribe();
    note();
  });
  return before?.[1] === 'visible' ? before[0] : undefined;
}
