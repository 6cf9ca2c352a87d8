import { CaseFileError } from './case-file-error.js';
import { step, type CaseFile, type Fault, type Step } from './schema.js';

const stepWords: ReadonlySet<string> = new Set(step.options.map((one) => one.shape.do.value));
type Place = readonly (string | number)[];

/** Throws for words that are known but can mean nothing here: a fault would never end, a step would do nothing. */
export function refuseMeaningless(read: CaseFile, file: string): void {
  (read.steps ?? []).forEach((one, index) => {
    refuseStep(one, read, file, ['steps', index]);
  });
  refuseFaults(read.faults ?? [], read, file, ['faults']);
  (read.variants ?? []).forEach((variant, index) => {
    refuseFaults(variant.faults ?? [], read, file, ['variants', index, 'faults']);
    refuseFaults(variant.add_faults ?? [], read, file, ['variants', index, 'add_faults']);
  });
}

function refuseStep(one: Step, { operations }: CaseFile, file: string, place: Place): void {
  if (one.do !== 'enqueue') return;
  const { keys, index } = one;
  if (keys === undefined && index === undefined) throw new CaseFileError(file, place, 'names neither keys nor index');
  const key = keys?.find((name) => !operations.some((operation) => operation.key === name));
  if (key !== undefined) throw new CaseFileError(file, [...place, 'keys'], `no operation has the key "${key}"`);
  const out = [index ?? []].flat().find((at) => at >= operations.length);
  if (out !== undefined) throw new CaseFileError(file, [...place, 'index'], `there is no operation ${String(out)}`);
}

function refuseFaults(faults: readonly Fault[], { operations }: CaseFile, file: string, place: Place): void {
  faults.forEach(({ when }, index) => {
    const at = [...place, index, 'when'];
    const { until } = when;
    if (until !== undefined && !stepWords.has(until) && !/^wake\+\d+$/.test(until)) {
      throw new CaseFileError(file, [...at, 'until'], `no step is called "${until}"`);
    }
    const key = 'key' in when ? when.key : undefined;
    if (key !== undefined && !operations.some((operation) => operation.key === key)) {
      throw new CaseFileError(file, [...at, 'key'], `no operation has the key "${key}"`);
    }
  });
}
