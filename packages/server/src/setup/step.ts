/** What a look at the server finds. */
export type Finding =
  | { readonly state: 'so' }
  /** It has to be made; `will` says how, where the title does not. */
  | { readonly state: 'missing'; readonly will?: string }
  /** Somebody made it otherwise. */
  | { readonly state: 'differs'; readonly is: string; readonly wanted: string }
  /** This server cannot do it. */
  | { readonly state: 'unsupported'; readonly why: string };

/** One thing that the server should have. Looking and making may be repeated at any time. */
export interface Step {
  /** What it is, such as `database afield-results`. */
  readonly title: string;
  look(): Promise<Finding>;
  /** Brings it about, whatever is there. */
  make(): Promise<void>;
}

/** What became of a step. */
export type StepOutcome =
  'already so' | 'made' | 'would be made' | 'kept' | 'replaced' | 'would be replaced' | 'skipped';

/** What became of a step, with a sentence where there is something to say. */
export interface StepReport {
  readonly title: string;
  readonly outcome: StepOutcome;
  readonly note?: string;
}

/**
 * Looks and makes, one step after the other. What differs is kept, unless `force`; with `dryRun` nothing is changed.
 * Each step looks for itself, so a run that ended in the middle is simply run again.
 */
export async function* runSteps(
  steps: readonly Step[],
  { force, dryRun }: { readonly force: boolean; readonly dryRun: boolean },
): AsyncGenerator<StepReport> {
  for (const step of steps) {
    const { title } = step;
    const finding = await step.look();
    if (finding.state === 'so') yield { title, outcome: 'already so' };
    if (finding.state === 'unsupported') yield { title, outcome: 'skipped', note: finding.why };
    if (finding.state === 'missing') {
      if (!dryRun) await step.make();
      const note = finding.will === undefined ? {} : { note: finding.will };
      yield { title, outcome: dryRun ? 'would be made' : 'made', ...note };
    }
    if (finding.state === 'differs') {
      if (force && !dryRun) await step.make();
      const note = `there: ${finding.is}; wanted: ${finding.wanted}`;
      yield { title, outcome: force ? (dryRun ? 'would be replaced' : 'replaced') : 'kept', note };
    }
  }
}
