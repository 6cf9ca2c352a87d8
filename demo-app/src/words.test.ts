import { describe, expect, it } from 'vitest';
import { countdown, count, wordsOfFailure } from './words.js';

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

  it('shows a code it has no words for as it is', () => {
    expect(wordsOfFailure('missing')).toBe('The record does not exist');
    expect(wordsOfFailure('constructor')).toBe('constructor');
  });
});
