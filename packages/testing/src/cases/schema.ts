import * as z from 'zod';
import { isObject, type JsonObject } from './json.js';

/* Documents and bodies stay the very objects that JSON.parse made, so that no key of theirs is lost. */
const doc = z.custom<JsonObject>(isObject, 'must be an object');
const json = z.custom<unknown>(() => true);
const seconds = z.number();
const count = z.int().nonnegative();
const perName = <V extends z.ZodType>(value: V) => z.record(z.string(), value);

const before = z.strictObject({
  _id: z.string(),
  $edit: doc.optional(),
  $delete: z.literal(true).optional(),
  db: z.string().optional(),
});

const when = {
  nth: count.optional(),
  from_nth: count.optional(),
  times: count.optional(),
  before_s: seconds.optional(),
  until: z.string().optional(),
};

const point = z.enum([
  'after-enqueue',
  'after-first-sync',
  'after-wipe',
  'after-batch',
  'after-doc-write',
  'after-publish',
  'after-clock-jump',
  'index-parked',
]);

const rejection = doc;

export const requestFault = z.strictObject({
  at: z.literal('request'),
  when: z
    .strictObject({
      ...when,
      method: z.string().optional(),
      path: z.string().optional(),
      rows_over: count.optional(),
      bytes_over: count.optional(),
      contains_id: z.string().optional(),
      db: z.string().optional(),
    })
    .default({}),
  do: z.strictObject({
    status: count.optional(),
    headers: perName(z.union([z.string(), z.number().transform(String)])).optional(),
    body: json.optional(),
    text: z.string().optional(),
    network_error: z.enum(['reset', 'refused', 'dns']).optional(),
    commit: z.boolean().optional(),
    commit_ids: z.array(z.string()).optional(),
    forward: z.boolean().optional(),
    keep_rows: count.optional(),
    cut_bytes_at: z.number().min(0).max(1).optional(),
    answer_ids: z.array(z.string()).optional(),
    before: before.optional(),
  }),
});

export const rowFault = z.strictObject({
  at: z.literal('row'),
  when: z.strictObject({ ...when, ids: z.array(z.string()), db: z.string().optional() }),
  do: z.strictObject({
    error: z.string().optional(),
    reason: z.string().optional(),
    ok: z.boolean().optional(),
    accepted: z.boolean().optional(),
    commit: z.boolean().optional(),
    status: count.optional(),
    before: before.optional(),
  }),
});

export const storageFault = z.strictObject({
  at: z.literal('storage'),
  when: z
    .strictObject({
      ...when,
      call: z.enum(['read', 'write', 'bulkDocs']).optional(),
      db: z.enum(['docs', 'queue', 'index']).optional(),
      batch: count.optional(),
      point: point.optional(),
    })
    .default({}),
  do: z.strictObject({
    reject: rejection.optional(),
    then_reject: rejection.optional(),
    commit: z.boolean().optional(),
    break_handle: z.boolean().optional(),
    hang: z.boolean().optional(),
    carry_out_at_s: seconds.optional(),
    wipe: z.boolean().optional(),
    keep_marker: z.boolean().optional(),
    server_rollback: json.optional(),
  }),
});

export const clockFault = z.strictObject({
  at: z.literal('clock'),
  when: z.strictObject({ ...when, after_attempt: count.optional() }).default({}),
  do: z.strictObject({ wall_jump_s: seconds.optional(), freeze_timers_s: seconds.optional() }),
});

export const processFault = z.strictObject({
  at: z.literal('process'),
  when: z
    .strictObject({
      ...when,
      point: point.optional(),
      key: z.string().optional(),
      tab: z.union([z.literal('leader'), count, z.string().regex(/^\d+$/)]).optional(),
    })
    .default({}),
  do: z.strictObject({ kill: z.boolean().optional(), restart: z.boolean().optional() }),
});

const faults = z.array(z.discriminatedUnion('at', [requestFault, rowFault, storageFault, clockFault, processFault]));

const lineageOperation = {
  key: z.string().optional(),
  id: json.optional(),
  label: z.string().optional(),
  from: json.optional(),
  to: json.optional(),
};
const operation = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('set-parent'), ...lineageOperation }),
  z.strictObject({ action: z.literal('set-contact'), ...lineageOperation }),
  z.strictObject({
    action: z.literal('delete'),
    key: z.string().optional(),
    id: json.optional(),
    label: z.string().optional(),
  }),
  z.strictObject({
    action: z.literal('delete-user'),
    key: z.string().optional(),
    id: json.optional(),
    label: z.string().optional(),
    guard: z.strictObject({ facility_id: z.array(z.string()) }).optional(),
  }),
  z.strictObject({
    action: z.literal('test-merge'),
    key: z.string().optional(),
    id: json.optional(),
    label: z.string().optional(),
    set: doc,
  }),
]);

const plainStep = <W extends string>(word: W) => z.strictObject({ do: z.literal(word) });
export const step = z.discriminatedUnion('do', [
  plainStep('enqueue-all'),
  z.strictObject({
    do: z.literal('enqueue'),
    keys: z.array(z.string()).optional(),
    index: z.union([count, z.array(count)]).optional(),
  }),
  z.strictObject({ do: z.literal('start'), tab: count.optional() }),
  plainStep('settle'),
  z.strictObject({ do: z.literal('advance'), s: seconds }),
  z.strictObject({
    do: z.literal('check'),
    state: z.string().optional(),
    state_in: z.array(z.string()).optional(),
    cause: z.string().optional(),
    done_keys: z.array(z.string()).optional(),
    requests_max: perName(count).optional(),
    index_state: z.string().optional(),
    parked_id: z.string().optional(),
  }),
  plainStep('online'),
  plainStep('login'),
  plainStep('free-space'),
  plainStep('arm-faults'),
  plainStep('build-index'),
  plainStep('query-index'),
  plainStep('resume-index'),
  z.strictObject({ do: z.literal('edit'), doc }),
  plainStep('wipe'),
  z.strictObject({ do: z.literal('restart'), tab: count.optional() }),
  plainStep('server-rollback'),
  plainStep('clock-jump'),
  plainStep('sleep'),
]);

const failedOperation = z.strictObject({
  key: z.string().optional(),
  id: json.optional(),
  code: z.string().optional(),
  code_in: z.array(z.string()).optional(),
  label: z.string().optional(),
});

export const expectation = z
  .strictObject({
    state: z.string(),
    failed_operations: z.array(failedOperation),
    docs: z.array(doc),
    server_docs: z.array(doc),
    server_users: z.array(doc),
    untouched: z.array(z.string()),
    server_untouched: z.array(z.string()),
    server_deleted: z.array(z.string()),
    revs_added: perName(count),
    revs_added_max: perName(count),
    row_attempts_max: perName(count),
    attempts: count,
    attempts_max: count,
    attempt_offsets_s: z.array(seconds),
    second_attempt_between_s: z.tuple([seconds, seconds]),
    attempts_after_wake_max: count,
    elapsed_max_s: seconds,
    tolerance: z.strictObject({ offset_pct: z.number() }),
    requests_max: perName(count),
    observed: z.array(z.string()),
    last_error_class: z.string(),
    events: z
      .strictObject({
        per_key: perName(z.tuple([count, count])),
        distinct_ids_per_key: count,
        order: z.array(z.tuple([z.string(), z.string()])),
      })
      .partial(),
    applied_once: z.array(z.string()),
    never_done: z.array(z.string()),
    quarantine: z.array(z.string()),
    enqueue_rejected: z.array(z.string()),
    server_results: json,
    same_rev_both_sides: z.array(z.string()),
    doc_count_delta: z.union([z.number(), perName(z.number())]),
    attachments: z.array(z.strictObject({ id: z.string(), name: z.string(), data: z.string() })),
    attachment_uploads: count,
    prototype_clean: z.array(z.string()),
    next_attempt_never_past: z.boolean(),
    changes_feed_whole: json,
    index: z
      .strictObject({
        state: z.string(),
        rows_for: perName(z.array(z.string())),
        row_ids: z.array(z.string()),
        checkpoint_never_past_unstored: z.boolean(),
        incomplete_query_flagged: z.boolean(),
      })
      .partial(),
  })
  .partial();

export const caseFile = z.strictObject({
  id: z.string(),
  title: z.string(),
  kind: z.string(),
  set: z.enum(['HAND', 'KEEP']),
  source: z.array(z.string()),
  target: z.enum(['server', 'local']),
  config: z
    .strictObject({
      batch_size: count.optional(),
      tabs: count.optional(),
      watchdog_s: seconds.optional(),
      start_online: z.boolean().optional(),
      server_db: z.string().optional(),
      index: z
        .strictObject({ name: z.string(), batch_size: count.optional(), checkpoint_every: count.optional() })
        .optional(),
    })
    .optional(),
  seed_docs: z.array(doc).default([]),
  server_docs: z.array(doc).default([]),
  server_users: z.array(doc).optional(),
  operations: z.array(operation).default([]),
  steps: z.array(step).optional(),
  faults: faults.optional(),
  variants: z
    .array(
      z.strictObject({
        name: z.string(),
        faults: faults.optional(),
        add_faults: faults.optional(),
        server_docs: z.array(doc).optional(),
        expect: expectation.optional(),
      }),
    )
    .optional(),
  expect: expectation,
});

export type CaseFile = z.infer<typeof caseFile>;
export type Expectation = z.infer<typeof expectation>;
export type Fault = NonNullable<CaseFile['faults']>[number];
export type RequestFault = z.infer<typeof requestFault>;
export type RowFault = z.infer<typeof rowFault>;
export type StorageFault = z.infer<typeof storageFault>;
export type ClockFault = z.infer<typeof clockFault>;
export type ProcessFault = z.infer<typeof processFault>;
export type Step = z.infer<typeof step>;
export type Operation = CaseFile['operations'][number];
export type Before = z.infer<typeof before>;
