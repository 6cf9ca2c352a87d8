import fc from 'fast-check';

/** What happens in one run, as plain data: fast-check makes it, shrinks it and prints it. */

export const requestFaults = [
  'network',
  'lost',
  'lost-then-edited',
  'timeout',
  'late',
  'portal',
  'redirect',
  'empty',
  'cut',
  'short',
  'shuffled',
  'rows-trouble-after',
  'rows-trouble-instead',
  'rows-unauthorized',
  'rows-of-another',
  'status-500',
  'status-502-page',
  'status-408',
  'status-429',
  'status-503-date',
  'status-401',
  'status-403',
  'status-404',
  'too-many-413',
  'edit-before',
] as const;
export type RequestFaultKind = (typeof requestFaults)[number];

export const storeFaults = ['reject', 'lost', 'lost-then-edited', 'slow'] as const;
export type StoreFaultKind = (typeof storeFaults)[number];

export type ActionName = 'set-parent' | 'set-contact' | 'add-mark' | 'note-all' | 'delete';

export interface ScriptOperation {
  /** Which document, of those that the model knows. */
  readonly doc: number;
  /** Which of a few values; the same value twice is a change that is there already. */
  readonly value: number;
  readonly guard: 'none' | 'value' | 'null' | 'first';
  readonly id: 'good' | 'none' | 'bad';
}

export interface ScriptBulk {
  readonly target: 'local' | 'server';
  readonly lane: string | undefined;
  readonly parts: readonly { readonly action: ActionName; readonly operations: readonly ScriptOperation[] }[];
}

export type Step =
  | { readonly do: 'enqueue'; readonly bulk: ScriptBulk }
  | {
      readonly do: 'fault';
      readonly kind: RequestFaultKind;
      readonly on: 'any' | 'write' | 'read';
      /** How many requests, and for how long at most. */
      readonly times: number;
      readonly forS: number;
      /** For `late`: how long; for a share of the rows or the body: where. */
      readonly size: number;
    }
  | {
      readonly do: 'store-fault';
      readonly kind: StoreFaultKind;
      readonly on: 'queue' | 'docs';
      readonly call: 'read' | 'write';
      readonly skip: number;
      readonly times: number;
      readonly delayS: number;
    }
  | { readonly do: 'advance'; readonly s: number }
  | { readonly do: 'edit'; readonly target: 'local' | 'server'; readonly doc: number }
  | { readonly do: 'kill'; readonly afterCalls: number; readonly done: boolean }
  | { readonly do: 'reload' }
  | { readonly do: 'jump'; readonly days: number }
  | { readonly do: 'sleep'; readonly s: number }
  | { readonly do: 'network'; readonly online: boolean }
  | { readonly do: 'wake' }
  | { readonly do: 'signed-in' }
  | { readonly do: 'password'; readonly answers: 'fresh' | 'stale' | 'rejects' | 'silent' }
  | { readonly do: 'twin' };

export interface Script {
  readonly batchSize: number;
  readonly jitter: number;
  readonly seed: number;
  readonly steps: readonly Step[];
}

const operation: fc.Arbitrary<ScriptOperation> = fc.record({
  doc: fc.nat(11),
  value: fc.nat(2),
  guard: fc.oneof(
    { weight: 5, arbitrary: fc.constant('none' as const) },
    { weight: 2, arbitrary: fc.constantFrom('value' as const, 'null' as const, 'first' as const) },
  ),
  id: fc.oneof(
    { weight: 30, arbitrary: fc.constant('good' as const) },
    { weight: 1, arbitrary: fc.constantFrom('none' as const, 'bad' as const) },
  ),
});

const part = fc.record({
  action: fc.oneof(
    {
      weight: 9,
      arbitrary: fc.constantFrom<ActionName>('set-parent', 'set-contact', 'add-mark', 'note-all', 'set-parent'),
    },
    { weight: 1, arbitrary: fc.constant<ActionName>('delete') },
  ),
  operations: fc.array(operation, { minLength: 1, maxLength: 8 }),
});

const bulk: fc.Arbitrary<ScriptBulk> = fc.record({
  target: fc.constantFrom('local' as const, 'server' as const),
  lane: fc.option(fc.constantFrom('a', 'b'), { nil: undefined, freq: 3 }),
  parts: fc.array(part, { minLength: 1, maxLength: 3 }),
});

const seconds = fc.oneof(fc.nat(3), fc.nat(70), fc.nat(900));

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('enqueue' as const), bulk }) },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      kind: fc.constantFrom(...requestFaults),
      on: fc.constantFrom('any' as const, 'write' as const, 'read' as const),
      times: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 6 })),
      forS: fc.constantFrom(120, 1200, 7200),
      size: fc.nat(99),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('store-fault' as const),
      kind: fc.constantFrom(...storeFaults),
      on: fc.constantFrom('queue' as const, 'docs' as const),
      call: fc.constantFrom('read' as const, 'write' as const),
      skip: fc.nat(6),
      times: fc.integer({ min: 1, max: 3 }),
      delayS: fc.nat(90),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('advance' as const), s: seconds }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('edit' as const),
      target: fc.constantFrom('local' as const, 'server' as const),
      doc: fc.nat(11),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('kill' as const), afterCalls: fc.nat(25), done: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'reload' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('jump' as const),
      days: fc.constantFrom(-3650, -400, -2, 2, 400, 3650),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sleep' as const), s: fc.nat(90_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('network' as const), online: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constantFrom({ do: 'wake' as const }, { do: 'signed-in' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('password' as const),
      answers: fc.constantFrom('fresh' as const, 'stale' as const, 'rejects' as const, 'silent' as const),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'twin' as const }) },
);

/** Scripts whose first steps queue something, so that what follows has something to break. */
export const scripts: fc.Arbitrary<Script> = fc.record({
  batchSize: fc.integer({ min: 1, max: 8 }),
  jitter: fc.constantFrom(0, 0.2),
  seed: fc.nat(),
  steps: fc
    .tuple(fc.array(step, { maxLength: 3 }), bulk, fc.array(step, { minLength: 3, maxLength: 18 }))
    .map(([before, first, after]) => [...before, { do: 'enqueue' as const, bulk: first }, ...after]),
});
