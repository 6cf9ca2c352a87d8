import { describe, expect, it } from 'vitest';
import type { BulkOperationStatus, ClientStatus, FailedOperation, TransferStatus } from '@afield/client';
import {
  countdown,
  count,
  notDone,
  wordsOfBulk,
  wordsOfClient,
  wordsOfFailure,
  wordsOfResolution,
  wordsOfPublisher,
} from './words.js';

const idle: TransferStatus = {
  state: 'idle',
  attempt: 0,
  attempts: 0,
  failedAttempts: 0,
  nextAttemptAt: undefined,
  lastError: undefined,
  transferred: 0,
};

const quiet = {
  state: 'idle',
  online: true,
  leader: true,
  signInRequired: false,
  pending: 0,
  failed: 0,
  unreported: 0,
  push: idle,
  pull: idle,
  results: idle,
  publishers: {},
  unpublished: 0,
  quarantined: 0,
} as unknown as ClientStatus;

describe('words for people', () => {
  it('counts down in minutes and seconds and never below zero', () => {
    expect(countdown(66_000, 1000)).toBe('in 1:05');
    expect(countdown(1500, 1000)).toBe('in 0:01');
    expect(countdown(0, 1000)).toBe('now');
  });

  it('groups digits and minds the singular', () => {
    expect(count(1, 'person', 'persons')).toBe('1 person');
    expect(count(5988, 'person', 'persons')).toBe('5,988 persons');
  });

  it('says what happened and what to do, also for a code that it does not know', () => {
    expect(wordsOfFailure('missing').what).toBe('The record does not exist');
    expect(wordsOfFailure('constructor').what).toBe('The change could not be made');
    expect(wordsOfFailure('constructor').next).not.toBe('');
  });

  it('calls only that fine what is fine', () => {
    expect(wordsOfClient(quiet)).toEqual({ text: 'Everything is at the server', mood: 'good' });
    expect(wordsOfClient(quiet, true)).toEqual({
      text: 'Everything is at the server. The server is down now.',
      mood: 'waiting',
    });
    expect(wordsOfClient({ ...quiet, push: { ...idle, left: 3 } })).toEqual({
      text: 'Bringing changes to the server',
      mood: 'busy',
    });
    expect(wordsOfClient({ ...quiet, failed: 1 })).toEqual({
      text: 'At the server, but 1 change failed.',
      mood: 'waiting',
    });
  });

  it('O6 says when events are under way, and when they wait', () => {
    const publisher = { ...idle, unpublished: 2 };
    const status = { ...quiet, unpublished: 2, publishers: { couchdb: publisher } };
    expect(wordsOfClient(status)).toEqual({
      text: 'At the server, but 2 events are not published yet.',
      mood: 'waiting',
    });
    const running = { ...status, publishers: { couchdb: { ...publisher, state: 'running' as const } } };
    expect(wordsOfClient(running).text).toBe('Bringing events to the server');
    const waiting = { ...status, publishers: { couchdb: { ...publisher, state: 'waiting-retry' as const } } };
    expect(wordsOfClient(waiting).text).toBe('The server does not answer: changes are kept on this device');
  });

  it('O8 does not say that the server is down when an event waits for a record that it has refused', () => {
    const lastError = { class: 'server' as const, code: 'unconfirmed' };
    const publisher = { ...idle, state: 'waiting-retry' as const, lastError, unpublished: 1 };
    expect(wordsOfPublisher(publisher).text).toBe('Waits until the server has the record');
    const status = { ...quiet, failed: 1, unpublished: 1, publishers: { couchdb: publisher } };
    expect(wordsOfClient(status).text).toBe('At the server, but 1 change failed.');
  });

  it('O8 does not call events up to date while they wait for their records', () => {
    const publisher = { ...idle, unpublished: 1 };
    expect(wordsOfPublisher(publisher)).toEqual({ text: 'Waits until the server has the record', mood: 'waiting' });
    expect(wordsOfPublisher({ ...publisher, unpublished: 0 }).text).toBe('Up to date');
    expect(wordsOfPublisher({ ...publisher, state: 'waiting-network' }).text).toContain('No network');
  });

  it('O4 says that a conflict waits for a person', () => {
    const text = (change: Partial<ClientStatus>): string => wordsOfClient({ ...quiet, ...change }).text;
    expect(text({ quarantined: 1 })).toBe('At the server, but 1 conflict waits for a decision.');
    expect(text({ quarantined: 2, failed: 1, unpublished: 1 })).toBe(
      'At the server, but 1 change failed and 2 conflicts wait for a decision.',
    );
  });

  it('R19 says that something is paused, and does not call the whole paused', () => {
    expect(wordsOfClient({ ...quiet, state: 'paused', pending: 3 }).text).toBe('A part of the queue is paused');
  });

  it('R19 says what became of a failure: waiting, worked, failed again, discarded', () => {
    const bulk = (cursor: number, state: string): BulkOperationStatus =>
      ({ id: 'b2', sequence: 2, cursor, total: 2, state }) as unknown as BulkOperationStatus;
    const retried = {
      failureId: 'f1',
      bulkOperationId: 'b1',
      index: 0,
      resolution: { how: 'retried', bulkOperationId: 'b2', index: 1, at: 5 },
    } as unknown as FailedOperation;
    const words = (one: BulkOperationStatus, all = [retried]): string => wordsOfResolution(retried, [one], all).text;
    expect(words(bulk(0, 'paused'))).toBe('Tried again as #2. Paused');
    expect(words(bulk(1, 'running'))).toBe('Tried again as #2. Working on it');
    expect(words(bulk(2, 'done'))).toBe('Tried again as #2. It worked');
    const another = { ...retried, failureId: 'f2', bulkOperationId: 'b2', index: 0, resolution: undefined };
    expect(words(bulk(2, 'done-with-failures'), [retried, another])).toBe('Tried again as #2. It worked');
    const again = { ...another, index: 1 };
    expect(words(bulk(2, 'done-with-failures'), [retried, again])).toBe('Tried again as #2. It failed again');
    expect(wordsOfResolution({ ...retried, resolution: { how: 'discarded', at: 5 } }, [], []).text).toBe('Discarded');
  });

  it('R5 says why a request cannot be done, and calls only a bug a fault of the app', () => {
    const words = (name: string): string =>
      wordsOfBulk({ state: 'failed', bug: { name, stack: 'It lies below.' } } as BulkOperationStatus, idle).text;
    expect(words('PlanRefusedError')).toBe('It lies below.');
    expect(words('TypeError')).toBe('Stopped by a fault in this app');
  });

  it('R19 counts what was not done, also where a cancel came in the middle of a batch', () => {
    const counts = { total: 10, cursor: 4, applied: 3, alreadyApplied: 1, failed: 1, resolved: 1 };
    expect(notDone(counts as unknown as BulkOperationStatus)).toBe(4);
  });
});
