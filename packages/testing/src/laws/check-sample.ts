import { sameJson, type AnyAction } from '@afield/client';
import { NothingHappensError } from '../fake-device.js';
import { BrokenLawError, type Law } from './broken-law-error.js';
import type { BatchSample } from './sample.js';
import { attachmentName, Trial, unknownField, unknownValue, type ActionWorld, type Run } from './trial.js';

/** Says that a law is broken, unless it is not asked for. */
type Complain = (law: Law, what: string) => void;

/**
 * Runs a sample on three devices: twice, with an answer that gets lost, and in the opposite order.
 * @throws BrokenLawError
 */
export async function checkSample(
  action: AnyAction,
  sample: BatchSample,
  worldOf: (sample: BatchSample) => ActionWorld | Promise<ActionWorld>,
  asked: ReadonlySet<Law>,
): Promise<void> {
  const complain: Complain = (law, what) => {
    if (asked.has(law)) throw new BrokenLawError(action.name, law, what, sample);
  };
  const onDevice = async <T>(work: (trial: Trial) => Promise<T>): Promise<T> => {
    const trial = new Trial(action, sample, await worldOf(sample));
    try {
      return await work(trial);
    } catch (error) {
      if (!(error instanceof NothingHappensError)) throw error;
      throw new BrokenLawError(action.name, 'comes-to-its-end', 'it still waits after an hour', sample);
    } finally {
      await trial.dispose();
    }
  };
  const first = await onDevice(async (trial) => {
    const before = await trial.seed();
    const [once, twice] = await trial.runTwice();
    ended(once, complain);
    ended(twice, complain);
    sameEffect(once, twice, 'the second run', complain);
    for (const [id, { rev }] of once.docs) {
      if (twice.docs.get(id)?.rev !== rev)
        complain('applied-writes-nothing', `the second run wrote ${quoted(id)} again`);
    }
    // What was deleted before had nothing left to be kept.
    for (const [id, { body }] of before) if (body !== undefined) keepsTheRest(id, once, complain);
    return once;
  });
  await onDevice(async (trial) => {
    await trial.seed();
    trial.loseAnswers();
    sameEffect(first, ended(await trial.run(), complain), 'the run after an answer that got lost', complain);
  });
  if (!asked.has('any-order') || sample.operations.length < 2) return;
  await onDevice(async (trial) => {
    await trial.seed();
    const opposite = ended(await trial.run('opposite'), complain);
    const different = difference(first, opposite);
    if (different !== undefined) complain('any-order', `the opposite order leaves ${different}`);
  });
}

function ended(run: Run, complain: Complain): Run {
  if (run.bug !== undefined) complain('comes-to-its-end', `the handler has a bug: ${run.bug}`);
  return run;
}

/** The later run leaves the same as the first one, and nothing fails that worked. */
function sameEffect(once: Run, again: Run, which: string, complain: Complain): void {
  const different = difference(once, again);
  if (different !== undefined) complain('twice-is-once', `${which} leaves ${different}`);
  for (const [place, code] of again.failed) {
    if (!once.failed.has(place)) {
      complain('own-effect', `${which} fails with "${code}" at operation ${String(place)}, which had worked`);
    }
  }
}

function difference(once: Run, again: Run): string | undefined {
  for (const id of new Set([...once.docs.keys(), ...again.docs.keys()])) {
    const [first, second] = [once.docs.get(id)?.body, again.docs.get(id)?.body];
    if (!sameJson(first, second)) return `${quoted(id)} as ${shown(second)} instead of ${shown(first)}`;
  }
  if (!sameJson(once.world, again.world)) return `${shown(again.world)} beside the documents, not ${shown(once.world)}`;
  return undefined;
}

function keepsTheRest(id: string, run: Run, complain: Complain): void {
  const body = run.docs.get(id)?.body;
  if (body === undefined) return;
  if (!sameJson(body[unknownField], unknownValue)) {
    complain('keeps-the-rest', `${quoted(id)} lost a field that the action does not know`);
  }
  const attachments = body['_attachments'] as Record<string, unknown>;
  if (attachments[attachmentName] === undefined) complain('keeps-the-rest', `${quoted(id)} lost an attachment`);
}

function quoted(id: string): string {
  return `the document ${JSON.stringify(id)}`;
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}
