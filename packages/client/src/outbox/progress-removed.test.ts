import { describe, expect, it } from 'vitest';
import { newHeader } from '../queue/new-header.js';
import { headerId, type Header } from '../queue/stored.js';
import { shortened, type Entry } from './progress.js';

const header = (sequence: number, state: Header['state'] = 'done'): Header => ({
  ...newHeader({ id: 'b', key: 'k', target: 'local', lane: null, parts: [], payload: 'p:t:b:', queuedAt: 0 }, []),
  _id: headerId(sequence),
  subjects: [],
  state,
  total: 10,
  cursor: state === 'done' ? 10 : 5,
});
const entry = (s: number, n: number): Entry => ({ s, n, d: n, w: [], o: [] });

describe('the progress of a publisher behind housekeeping', () => {
  it('O7 drops the entry of what housekeeping has removed, and keeps that of what this tab has not read yet', () => {
    const progress = { upTo: 1, open: [entry(2, 5), entry(3, 10), entry(5, 10), entry(9, 3)] };
    const headers = [header(2, 'running'), header(5), header(6, 'running')];
    expect(shortened(progress, headers)).toEqual({ upTo: 1, open: [entry(2, 5), entry(5, 10), entry(9, 3)] });
  });

  it('O7 goes on across the gap that removed ones leave', () => {
    const progress = { upTo: 1, open: [entry(4, 10), entry(8, 5)] };
    expect(shortened(progress, [header(4), header(8, 'running')])).toEqual({ upTo: 4, open: [entry(8, 5)] });
  });
});
