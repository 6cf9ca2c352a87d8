import { beforeEach, describe, expect, it } from 'vitest';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import { Failures } from './failures.js';
import { Queue } from './queue.js';
import { Reports } from './reports.js';
import {
  failureId,
  headerId,
  reportDoc,
  storedVersion,
  type Header,
  type Report,
  type StoredFailure,
} from './stored.js';

const header = { _id: headerId(1), id: 'bulk', state: 'done', cursor: 3, failed: 0 } as Header;

function failure(index: number, refused: string | null = null): StoredFailure {
  return {
    _id: failureId(1, index),
    v: storedVersion,
    bulkOperationId: 'bulk',
    index,
    key: null,
    id: `d${String(index)}`,
    action: 'x',
    code: 'missing',
    reason: 'made up',
    operation: null,
    mayHaveBeenApplied: false,
    refused,
    at: 0,
  };
}

describe('what is kept of failures and reports when there are two writers', () => {
  let queue: Queue;

  beforeEach(() => {
    const PouchDB = memoryPouch();
    queue = new Queue(new LocalDatabase(() => new PouchDB('queue')));
  });

  const stored = async (): Promise<Report | undefined> => queue.docs.read('hr:000000000001', reportDoc);
  const refuse = (report: Report): Report => ({ ...report, refused: report.refused + 1 });

  it('S1 a refusal and a delivery at the same moment both count', async () => {
    const reports = new Reports(queue);
    await Promise.all([
      reports.write([{ header, change: refuse }]),
      reports.write([{ header, change: (report) => ({ ...report, delivered: 'done 3 0 0' }) }]),
      reports.write([{ header, change: refuse }]),
    ]);
    expect(await stored()).toMatchObject({ refused: 2, delivered: 'done 3 0 0' });
    expect(reports.of(header)).toMatchObject({ refused: 2, delivered: 'done 3 0 0' });
  });

  it('S1 a report that another tab changed is read and changed again', async () => {
    const [one, other] = [new Reports(queue), new Reports(queue)];
    await one.write([{ header, change: refuse }]);
    await other.write([{ header, change: refuse }]);
    await one.write([{ header, change: refuse }]);
    expect(await stored()).toMatchObject({ refused: 3 });
  });

  it('S2 the documents that go with a report are written once', async () => {
    const [one, other] = [new Reports(queue), new Reports(queue)];
    await other.write([{ header, change: refuse }]);
    const revs = await one.write([{ header, change: refuse }], [failure(1, '2-x')]);
    expect([...revs.keys()]).toContain(failureId(1, 1));
    expect(await stored()).toMatchObject({ refused: 2 });
  });

  it('V1 failures that another tab has stored are there after a reload, in the order of the operations', async () => {
    const failures = new Failures(queue.docs, () => undefined);
    await failures.load();
    await queue.docs.writeAll([failure(7), failure(2)]);
    failures.added([failure(9)]);
    expect(failures.list().map(({ index }) => index)).toEqual([9]);
    await failures.reload();
    expect(failures.list().map(({ index }) => index)).toEqual([2, 7]);
    failures.added([failure(4)]);
    failures.removed([failureId(1, 7)]);
    expect(failures.list().map(({ index }) => index)).toEqual([2, 4]);
  });

  it('S2 failures of a document that the server refused are found by the document', async () => {
    const failures = new Failures(queue.docs, () => undefined);
    await queue.docs.writeAll([failure(1, '2-x'), failure(2)]);
    await failures.load();
    expect(failures.refusedOf('d1')).toHaveLength(1);
    expect(failures.refusedOf('d2')).toEqual([]);
    failures.removed([failureId(1, 1)]);
    expect(failures.refusedOf('d1')).toEqual([]);
  });
});
