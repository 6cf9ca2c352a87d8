import { describe, expect, it } from 'vitest';
import type { ClientStatus, TransferStatus } from '@afield/client';
import { countdown, count, wordsOfClient, wordsOfFailure } from './words.js';

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
    expect(wordsOfClient({ ...quiet, failed: 1 })).toEqual({
      text: 'At the server, but 1 change failed.',
      mood: 'waiting',
    });
  });
});
