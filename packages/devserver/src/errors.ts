/** Why something of the development server failed. */
export type DevServerErrorCode =
  /** The server or the proxy could not start; the message says why (a port that is taken, for example). */
  | 'start_failed'
  /** A rule for faults has a field that is missing, unknown or of the wrong kind; the message names it. */
  | 'invalid_rule'
  /** The server answered a request of ours with an error; the message has its status and reason. */
  | 'request_failed'
  /** An argument of the command line or an environment variable is wrong. */
  | 'invalid_argument';

/** An error of this package. Messages never hold credentials. */
export class DevServerError extends Error {
  override readonly name = 'DevServerError';
  readonly code: DevServerErrorCode;

  constructor(code: DevServerErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
