import { sampleEvents } from './sample-events.js';
import type { Outcome, PublisherTrial } from './trial.js';

/** Lets a publisher fail in many ways, and looks into everything that it says about it. */
export async function checkSecrets(trial: PublisherTrial): Promise<void> {
  const events = sampleEvents(2);
  trial.failNext('before');
  look(trial, await trial.publish(events));
  trial.heal();
  trial.world.refuse?.(events[0]?.id ?? '');
  look(trial, await trial.publish(events));
  if (trial.usesOurNetwork) {
    for (const status of [400, 403, 404, 409, 413, 500, 503, 407, 401]) {
      trial.answerAll({ status, text: JSON.stringify({ error: 'refused', reason: 'refused' }) });
      look(trial, await trial.publish(events));
      trial.heal();
    }
  }
}

function look(trial: PublisherTrial, outcome: Outcome): void {
  const said = 'error' in outcome ? textsOf(outcome.error) : [JSON.stringify(outcome.answer.error ?? '')];
  for (const secret of trial.world.secrets ?? []) {
    if (said.some((text) => text.includes(secret))) throw trial.broken('an error holds a secret');
  }
}

/** Message, stack and own fields of an error and of its causes. */
function textsOf(error: unknown): readonly string[] {
  const texts: string[] = [];
  for (let one = error, depth = 0; one !== undefined && one !== null && depth < 10; depth++) {
    texts.push(String(one));
    if (typeof one !== 'object') break;
    texts.push(JSON.stringify(one) ?? '');
    if (!(one instanceof Error)) break;
    texts.push(one.message, one.stack ?? '');
    one = one.cause;
  }
  return texts;
}
