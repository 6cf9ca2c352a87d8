import { describe, expect, it } from 'vitest';
import { TestPresence } from '../test-bed.fixture.js';
import { keepPresence } from './presence.js';

describe('the note that a page is looked at', () => {
  it('R16 says so, and that nobody looks any more when the client is closed', async () => {
    const presence = new TestPresence();
    const closing = new AbortController();
    await keepPresence(presence, 'run', 'one', closing.signal);
    expect(presence.noted('run')).toBe('one visible');
    presence.set(false);
    expect(presence.noted('run')).toBe('one hidden');
    presence.set(true);
    closing.abort();
    expect(presence.noted('run')).toBe('one hidden');
  });

  it('S7 does not come back when it was removed because its person has logged out', async () => {
    const presence = new TestPresence();
    const closing = new AbortController();
    await keepPresence(presence, 'run', 'one', closing.signal);
    presence.forget('run');
    presence.set(false);
    closing.abort();
    expect(presence.notes.size).toBe(0);
  });
});
