import type { Script, ScriptBulk, ScriptOperation, Step, StoreFaultKind } from './script.js';

/** Scripts that once broke a law, each with what was wrong. */

const operation = (doc: number, value = 0, more: Partial<ScriptOperation> = {}): ScriptOperation => ({
  doc,
  value,
  guard: 'none',
  id: 'good',
  ...more,
});

const enqueue = (
  target: ScriptBulk['target'],
  ...parts: readonly (readonly [ScriptBulk['parts'][number]['action'], ...ScriptOperation[]])[]
): Step => ({
  do: 'enqueue',
  bulk: { target, lane: undefined, parts: parts.map(([action, ...operations]) => ({ action, operations })) },
});

const storeFault = (kind: StoreFaultKind, on: 'queue' | 'docs', call: 'read' | 'write', skip = 0): Step => ({
  do: 'store-fault',
  kind,
  on,
  call,
  skip,
  times: 1,
  delayS: 0,
});

const script = (...steps: readonly Step[]): Script => ({ batchSize: 1, jitter: 0, seed: 0, steps });

/** A document that the server refuses, one whose field others overwrite, and one that has nothing special. */
const [refused, contested, plain] = [8, 5, 0];

export const knownScripts: readonly (readonly [string, Script])[] = [
  [
    'R12 R15 credentials that the app gave and that were refused within the minute: it is asked again later',
    script(
      enqueue('local', ['set-parent', operation(plain, 0, { id: 'none' })]),
      { do: 'password', answers: 'fresh' },
      { do: 'password', answers: 'stale' },
      { do: 'advance', s: 0 },
      enqueue('local', ['set-parent', operation(plain, 0, { guard: 'value' })]),
    ),
  ],
  [
    'S2 S6 the push refuses what another runner has written: the operation fails, also where this one has not heard of it',
    script({ do: 'twin' }, storeFault('reject', 'queue', 'read'), enqueue('local', ['delete', operation(refused)])),
  ],
  [
    'S2 a refused revision whose writer is not known yet is judged when it is, also where earlier ones were refused',
    script(
      enqueue('local', ['set-parent', operation(refused), operation(plain)]),
      storeFault('lost', 'docs', 'write'),
      enqueue('local', ['add-mark', operation(refused), operation(plain)], ['delete', operation(plain)]),
      { do: 'advance', s: 0 },
      { do: 'reload' },
    ),
  ],
  [
    'R17 two that are queued at once never run in another order than their numbers say, also when the first is slow',
    script(
      storeFault('slow', 'queue', 'write', 1),
      enqueue('local', ['set-parent', operation(plain)]),
      enqueue('local', ['set-parent', operation(plain, 0, { guard: 'value' })]),
    ),
  ],
  [
    'R9 S6 a runner that tries to take over and fails costs no failure its place in the list',
    script(
      enqueue('local', ['set-parent', operation(plain)]),
      { do: 'password', answers: 'stale' },
      enqueue('server', ['set-parent', operation(plain, 0, { guard: 'value' }), operation(plain)]),
      { do: 'twin' },
      { do: 'advance', s: 420 },
    ),
  ],
  [
    'R3 what another editor did after a write whose answer got lost is not undone by a second write',
    script(storeFault('lost-then-edited', 'docs', 'write'), enqueue('local', ['set-parent', operation(contested)])),
  ],
  [
    'R3 O2 a bulk operation that has run while its enqueue still waits for an answer does not begin anew',
    script(
      enqueue('local', ['set-parent', operation(plain)]),
      { do: 'store-fault', kind: 'slow', on: 'queue', call: 'read', skip: 0, times: 1, delayS: 1 },
      storeFault('lost', 'queue', 'write', 1),
      enqueue('local', ['set-parent', operation(plain, 0, { id: 'none' }), operation(plain, 1)]),
    ),
  ],
  [
    'S3 a client that is closed while its store opens is closed, also when the opening fails then',
    script(
      enqueue('local', ['delete', operation(plain)]),
      storeFault('slow', 'queue', 'read'),
      { do: 'kill', afterCalls: 0, done: false },
      storeFault('reject', 'queue', 'read'),
      enqueue('local', ['set-parent', operation(plain)]),
      { do: 'reload' },
    ),
  ],
  [
    'S2 R9 what the push refuses is counted as often as it is listed, also where the write of it got no answer',
    script(
      { do: 'twin' },
      { do: 'fault', kind: 'network', on: 'any', times: 1, forS: 120, size: 0 },
      enqueue('local', ['delete', operation(refused), operation(plain)]),
      storeFault('lost', 'queue', 'write', 1),
      { do: 'advance', s: 0 },
      enqueue('local', ['set-parent', operation(plain)]),
      storeFault('reject', 'queue', 'read'),
      enqueue('local', ['set-parent', operation(plain, 0, { guard: 'value' })]),
    ),
  ],
];
