import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RetryableError } from './model/errors.js';
import { handAction, paint, TestBed } from './test-bed.fixture.js';

describe('waiting is never endless by mistake', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(() => bed.close());

  it('R15 what another tab has queued runs within a minute, although its message got lost', async () => {
    bed.channels = null;
    const leader = bed.open();
    await bed.seed(leader, 1);
    await bed.list(leader);
    const other = bed.open({ autoStart: false });
    const { bulkOperationId } = await other.enqueue(paint(['d0000'], 'blue'));
    await bed.until(async () => (await bed.list(leader)).some(({ state }) => state === 'done'), 1000);
    expect(bed.clock.monotonic()).toBeGreaterThan(0);
    expect(bed.clock.monotonic()).toBeLessThanOrEqual(90_000);
    expect(await bed.now(leader, bulkOperationId)).toMatchObject({ applied: 1 });
  });

  it('R15 what another tab has paused or resumed is seen within a minute, although its message got lost', async () => {
    bed.channels = null;
    const { action, calls } = handAction('work');
    const leader = bed.open({ actions: [action] });
    const { bulkOperationId: id } = await leader.enqueue({
      target: 'local',
      actions: [{ action: 'work', operations: [{ id: 'a' }] }],
    });
    await bed.until(() => calls.length === 1);
    calls[0]?.fail(new RetryableError('not yet', { notBeforeMs: 600_000 }));
    await bed.reaches(leader, id, ['waiting-retry']);
    const other = bed.open({ actions: [action], autoStart: false });
    await other.pause(id);
    await bed.until(async () => (await bed.now(leader, id)).state === 'paused', 10_000);
    await other.resume(id);
    await bed.until(() => calls.length === 2, 10_000);
    calls[1]?.answer({});
    await bed.settled(leader, id);
  });

  it('R15 at every moment something runs, or a due time exists, or a named state says what is awaited', async () => {
    const { action, calls } = handAction('work');
    const states = new Set<string>();
    const client = bed.open({ actions: [action] });
    client.bulkOperations$.subscribe((list) => {
      for (const { state, nextAttemptAt } of list) {
        states.add(state);
        if (state === 'waiting-retry' || state === 'waiting-storage') {
          expect(nextAttemptAt).toBeDefined();
          expect((nextAttemptAt ?? 0) - bed.clock.wall()).toBeLessThanOrEqual(300_000);
        }
      }
    });
    const { bulkOperationId: id } = await client.enqueue({
      target: 'local',
      actions: [{ action: 'work', operations: [{ id: 'a' }] }],
    });
    for (let attempt = 0; attempt < 9; attempt++) {
      await bed.until(() => calls.length === attempt + 1, 1000);
      calls[attempt]?.fail(new RetryableError('not yet'));
      await bed.becomes(client, id, ({ failedAttempts }) => failedAttempts === attempt + 1);
    }
    expect([...states]).toEqual(expect.arrayContaining(['queued', 'running', 'waiting-retry']));
  });
});
