/** Codes of failures that Afield knows (SPEC, Failure codes); a handler may add its own. */
export type FailureCode =
  | 'missing'
  | 'guard_mismatch'
  | 'forbidden'
  | 'no_id'
  | 'invalid_id'
  | 'invalid_doc'
  | 'too_large'
  | 'missing_stub'
  | 'circular_lineage'
  | 'too_deep'
  | 'conflicting_content'
  | 'crashed'
  | 'unexpected'
  | (string & {});

/** Codes are sent to the server: fixed words of an app, never text with the content of a document. */
export const failureCode = /^[\w.-]{1,64}$/;

/** An operation failed for good. */
export interface Failure {
  readonly code: FailureCode;
  /** For people; kept on this device, never sent. */
  readonly reason: string;
}
