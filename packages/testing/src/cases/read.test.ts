import { describe, expect, it } from 'vitest';
import { readCases } from './read.js';

const base = {
  id: 'T01',
  title: 'a test',
  kind: 'test',
  set: 'HAND',
  source: [],
  target: 'server',
  seed_docs: [],
  server_docs: [{ _id: 'p1' }],
  operations: [{ key: 'k', action: 'set-parent', id: 'p1', from: null, to: { _id: 'h1' } }],
  expect: { state: 'done' },
};

const read = (changes: object): ReturnType<typeof readCases> =>
  readCases(JSON.stringify({ ...base, ...changes }), 'T01.json');
const requestFault = { at: 'request', when: { method: 'POST' }, do: { status: 503 } };

const untilStep = (until: string): object => ({ ...requestFault, when: { until } });
const processFault = (when: object): object => ({ at: 'process', when: { point: 'after-batch', ...when }, do: {} });

describe('a case file', () => {
  it.each([
    ['at the top', { colour: 1 }, 'colour'],
    ['in config', { config: { batchsize: 1 } }, 'config.batchsize'],
    ['in an operation', { operations: [{ action: 'delete', id: 'p1', form: 1 }] }, 'operations.0.form'],
    ['in a step', { steps: [{ do: 'advance', s: 1, min: 2 }] }, 'steps.0.min'],
    ['in the moment of a fault', { faults: [{ ...requestFault, when: { methd: 'POST' } }] }, 'faults.0.when.methd'],
    ['in a fault', { faults: [{ ...requestFault, do: { stats: 503 } }] }, 'faults.0.do.stats'],
    ['in a row fault', { faults: [{ at: 'row', when: { ids: ['p1'] }, do: { eror: 'x' } }] }, 'faults.0.do.eror'],
    ['in what is expected', { expect: { sate: 'done' } }, 'expect.sate'],
    ['in an expected failure', { expect: { failed_operations: [{ kee: 'k' }] } }, 'expect.failed_operations.0.kee'],
    ['in an expected document', { expect: { docs: [{ _id: 'p1', $deletd: true }] } }, 'expect.docs.0.$deletd'],
    ['in a variant', { variants: [{ name: 'v', fault: [] }] }, 'variants.0.fault'],
    ['in the expectation of a variant', { variants: [{ name: 'v', expect: { stat: 'x' } }] }, 'variants.0.expect.stat'],
    ['in a generated value', { server_docs: [{ _id: 'p1', note: { $txt: 5 } }] }, 'server_docs.0.note.$txt'],
    ['beside $repeat', { server_docs: [{ $repeat: 2, docs: {} }] }, 'server_docs.0.docs'],
    [
      'in an edit of another actor',
      { faults: [{ ...requestFault, do: { before: { _id: 'p1', edit: {} } } }] },
      'faults.0.do.before.edit',
    ],
  ])('is refused for an unknown word %s, with file, place and word', (_where, changes, place) => {
    const word = place.split('.').at(-1) ?? '';
    expect(() => read(changes)).toThrow(`T01.json, at ${place}: unknown word "${word}"`);
  });

  it.each([
    ['a step', { steps: [{ do: 'dance' }] }, 'steps.0.do'],
    ['an action', { operations: [{ action: 'paint', id: 'p1' }] }, 'operations.0.action'],
    ['a fault', { faults: [{ at: 'moon', when: {}, do: {} }] }, 'faults.0.at'],
    [
      'a point',
      { faults: [{ at: 'process', when: { point: 'after-lunch' }, do: { kill: true } }] },
      'faults.0.when.point',
    ],
  ])('is refused for a name of %s that is unknown', (_what, changes, place) => {
    expect(() => read(changes)).toThrow(`T01.json, at ${place}: `);
  });

  it.each([
    ['a step names a key that no operation has', { steps: [{ do: 'enqueue', keys: ['x'] }] }, 'steps.0.keys'],
    ['a step names a place that no operation has', { steps: [{ do: 'enqueue', index: [0, 1] }] }, 'steps.0.index'],
    ['a step to queue names nothing', { steps: [{ do: 'enqueue' }] }, 'steps.0'],
    ['a fault lasts until an unknown step', { faults: [untilStep('logn')] }, 'faults.0.when.until'],
    [
      'a fault of a variant does',
      { variants: [{ name: 'v', faults: [untilStep('wake')] }] },
      'variants.0.faults.0.when.until',
    ],
    ['a process ends at an unknown key', { faults: [processFault({ key: 'x' })] }, 'faults.0.when.key'],
    ['a process ends in an unknown tab', { faults: [processFault({ tab: 'follower' })] }, 'faults.0.when.tab'],
  ])('is refused where %s', (_what, changes, place) => {
    expect(() => read(changes)).toThrow(`T01.json, at ${place}: `);
  });

  it('takes a fault without a moment as one that is always there, and a number as the text of a header', () => {
    const faults = [{ at: 'request', do: { status: 429, headers: { 'retry-after': 120 } } }];
    expect(read({ faults })[0]?.faults).toEqual([
      { at: 'request', when: {}, do: { status: 429, headers: { 'retry-after': '120' } } },
    ]);
  });

  it('writes out $repeat, $text and $deep', () => {
    const [one] = read({
      server_docs: [{ $repeat: 2, doc: { _id: 'q{n}', parent: { $deep: 3, id: 'lv{n}' }, note: { $text: 4 } } }],
      operations: [{ $repeat: 2, op: { key: 'k-{n}', action: 'delete', id: 'q{n}' } }],
    });
    const lineage = { _id: 'lv1', parent: { _id: 'lv2', parent: { _id: 'lv3' } } };
    expect(one?.serverDocs).toEqual([
      { _id: 'q1', parent: lineage, note: 'xxxx' },
      { _id: 'q2', parent: lineage, note: 'xxxx' },
    ]);
    expect(one?.operations.map(({ key, id }) => [key, id])).toEqual([
      ['k-1', 'q1'],
      ['k-2', 'q2'],
    ]);
  });

  it('keeps __proto__ as a plain key', () => {
    const text = JSON.stringify({ ...base, server_docs: ['HERE'] }).replace(
      '"HERE"',
      '{"_id":"p1","__proto__":{"a":1}}',
    );
    expect(JSON.stringify(readCases(text, 'T01.json')[0]?.serverDocs[0])).toBe('{"_id":"p1","__proto__":{"a":1}}');
    expect({}).not.toHaveProperty('a');
  });

  it('gives the case and its variants: faults replaced or added, expectations laid over', () => {
    const added = { at: 'process', when: { point: 'after-batch' }, do: { kill: true } };
    const [main, replaced, more] = read({
      faults: [requestFault],
      expect: { state: 'done', attempts: 2 },
      variants: [
        { name: 'calm', faults: [], expect: { attempts: 1 } },
        { name: 'wild', add_faults: [added] },
      ],
    });
    expect(main?.steps.map((step) => step.do)).toEqual(['enqueue-all', 'start', 'settle']);
    expect(replaced).toMatchObject({ name: 'T01/calm', faults: [], expect: { state: 'done', attempts: 1 } });
    expect(more).toMatchObject({ name: 'T01/wild', faults: [requestFault, added], expect: { attempts: 2 } });
  });
});
