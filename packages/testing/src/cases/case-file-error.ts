/** A case file says something that the runner does not know: nothing of it is run. */
export class CaseFileError extends Error {
  constructor(
    readonly file: string,
    readonly place: readonly (string | number)[],
    problem: string,
  ) {
    super(`${file}, at ${place.length === 0 ? 'the top' : place.join('.')}: ${problem}`);
    this.name = 'CaseFileError';
  }
}

/** The case asks for something that the format knows but this runner cannot do yet. */
export class NotPossibleYetError extends Error {
  constructor(readonly what: string) {
    super(`not possible yet: ${what}`);
    this.name = 'NotPossibleYetError';
  }
}
