export { createClient } from './client.js';
export { defineDocumentAction, defineAction } from './actions/define.js';
export { definePlan } from './actions/plan.js';
export { defineIndex } from './lookup/define.js';
export { createAction, type CreateOperation } from './actions/create.js';
export { updateAction, type UpdateOperation } from './actions/update.js';
export { deleteAction } from './actions/delete.js';
export { sameJson } from './model/same-json.js';
export { couchdbPublisher, type CouchdbPublisherOptions } from './outbox/couchdb-publisher.js';
export { eventDocument, readEventDocument, type EventReading } from './outbox/event-document.js';
export { httpPublisher, type HttpPublisherOptions } from './outbox/http-publisher.js';
export { standalonePublishContext, type StandalonePublishOptions } from './outbox/publish-context.js';
export { readEvents, type EventsRead, type ReadEventsOptions } from './outbox/read-events.js';
export type { EventsDatabase } from './outbox/events-feed.js';
export { rampOfR2 } from './retry/ramp.js';
export { removeLeaves, type LeavesAnswer, type RefusedWrite } from './run/remove-leaves.js';
export { judgeWrite, readRows, type JudgedRead, type JudgedWrite } from './run/batch-rows.js';
export {
  AfieldError,
  ClientClosedError,
  IdempotencyConflictError,
  IndexNotReadyError,
  InvalidRequestError,
  OtherStoreError,
  NotDrainedError,
  PendingFileError,
  PlanRefusedError,
  RetryableError,
  StoreLeftError,
  StoreTooNewError,
  UnsyncedWorkError,
  type ErrorClass,
  type ErrorSummary,
  type KeyConflict,
  type RequestIssue,
} from './model/errors.js';
export { storeNameOf } from './model/store-name.js';
export type { Doc, Json } from './model/json.js';
export type {
  BulkOperationState,
  BulkOperationStatus,
  ClientStatus,
  Drained,
  FailedOperation,
  NotDoneOperation,
  PublisherStatus,
  Resolution,
  Target,
  TransferStatus,
  WorkCounts,
} from './model/states.js';
export type {
  ActionPart,
  AuthOptions,
  Client,
  ClientOptions,
  DeniedDocument,
  ForgetReceipt,
  KeptDocument,
  OutOfSightAnswer,
  PullOptions,
  ReplicationMode,
  Credentials,
  DryRun,
  DuplicateOperation,
  EnqueueReceipt,
  EnqueueRequest,
  FailureFilter,
  ImportReceipt,
  OperationInput,
  PlanRequest,
  RedactedOperation,
  ResultsOptions,
  RetryOptions,
  RetryReceipt,
  SeenBySync,
} from './model/client.js';
export type {
  Action,
  AnyAction,
  BatchAction,
  DocumentAction,
  FailedRow,
  HandlerContext,
  HandlerResult,
  OperationOf,
  OwnErrors,
  PassingError,
  RefusedRow,
  ServerAccess,
} from './model/handler.js';
export type { DocumentEvent, EventKind, PublishAnswer, PublishContext, Publisher } from './model/event.js';
export type { ConflictQuestion, OpenConflict, ResolveConflict } from './model/conflict.js';
export type { QuarantineDecision, QuarantineEnd, QuarantineEntry, QuarantineKind } from './model/quarantine.js';
export type { AnyPlan, DocumentReader, Plan, PlanContext } from './model/plan.js';
export type {
  IndexAnswer,
  IndexDefinition,
  IndexKey,
  IndexKeys,
  IndexPrefix,
  IndexQuery,
  IndexQueryOptions,
  IndexRange,
  IndexReader,
  IndexRow,
  IndexState,
  LocalIndex,
  SkippedDocument,
} from './model/lookup.js';
export type { Failure, FailureCode } from './model/failure.js';
export type { Channel, Clock, Connectivity, Environment, Locks, Presence } from './model/environment.js';
export type {
  DocRow,
  DocumentStore,
  PouchChanges,
  PouchConstructor,
  PouchLike,
  PouchReplication,
  WriteAnswer,
  WriteRow,
} from './model/pouch.js';
