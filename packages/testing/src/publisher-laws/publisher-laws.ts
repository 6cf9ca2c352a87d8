import { sameJson } from '@afield/client';
import { askedLaws, wrongOption } from '../laws/asked-laws.js';
import { checkSecrets } from './check-secrets.js';
import { publisherLawNames, type PublisherLaw } from './laws.js';
import { sampleEvent, sampleEvents, unusualIds } from './sample-events.js';
import { nameOf, PublisherTrial } from './trial.js';
import { checkWorld, type PublisherWorld } from './world.js';

export interface PublisherLawsOptions {
  /** Only these laws. Default: all. */
  readonly laws?: readonly PublisherLaw[];
}

/**
 * Checks that a publisher keeps the laws; for any test runner. `world` makes a publisher with an empty place of its own:
 * it is called once for each law.
 * @throws AfieldError `invalid_option` when the options or the world are wrong
 * @throws BrokenPublisherLawError at the first law that is broken
 */
export async function publisherLaws(
  world: () => PublisherWorld | Promise<PublisherWorld>,
  options: PublisherLawsOptions = {},
): Promise<void> {
  if (typeof world !== 'function') {
    throw wrongOption(
      'publisherLaws',
      'the first argument, `world`, must be a function that makes { publisher, stored }',
    );
  }
  for (const law of askedLaws('publisherLaws', options, ['laws'], publisherLawNames)) {
    const made = await world();
    checkWorld(made);
    try {
      await checks[law](new PublisherTrial(made, law));
    } finally {
      await made.dispose?.();
    }
  }
}

const checks: Readonly<Record<PublisherLaw, (trial: PublisherTrial) => Promise<void>>> = {
  'arrives-whole': async (trial) => {
    const events = sampleEvents(15);
    for (const event of events) await trial.publishAll([event], 'published alone');
    await trial.mustHold(events, 'published one by one');
  },

  'stored-once': async (trial) => {
    const events = sampleEvents(5);
    await trial.publishAll(events.slice(0, 3), 'the first time');
    await trial.publishAll(events, 'published again, with two new ones');
    await trial.publishAll(events, 'the third time');
    await trial.mustHold(events, 'published three times');
  },

  'lost-answer': async (trial) => {
    const events = sampleEvents(3);
    trial.failNext('after');
    await trial.publish(events);
    await trial.publishAll(events, 'after an answer that got lost');
    await trial.mustHold(events, 'after an answer that got lost');
  },

  'other-content': async (trial) => {
    const events = sampleEvents(3);
    await trial.publishAll(events, 'the first time');
    for (const fields of [{ rev: '9-other' }, { previous: 'another' }, { changed: false }, { index: 99 }]) {
      const [first, second] = events;
      if (first === undefined || second === undefined) return;
      const other = { ...second, ...fields };
      const outcome = await trial.publish([first, other, sampleEvent(7)]);
      const answer = 'answer' in outcome ? outcome.answer : { accepted: [] };
      if (answer.conflicts?.some(({ id }) => id === other.id) !== true) {
        throw trial.broken('an event whose id is there with other content is not in `conflicts`');
      }
      for (const { id } of [first, sampleEvent(7)]) {
        if (!answer.accepted.includes(id)) throw trial.broken('a conflict keeps another event from being accepted');
      }
    }
    await trial.mustHold([...events, sampleEvent(7)], 'after a conflict');
  },

  'no-false-success': async (trial) => {
    const events = sampleEvents(3);
    trial.failNext('before');
    await trial.publish(events);
    trial.heal();
    if (trial.usesOurNetwork) await outages(trial);
    await refusedEvent(trial);
  },

  'failure-in-the-middle': async (trial) => {
    for (const [part, commit] of [false, true].entries()) {
      const events = sampleEvents(10 * (part + 1));
      if (trial.usesOurNetwork) trial.failSecond(commit);
      else trial.failNext(commit ? 'after' : 'before');
      await trial.publish(events);
      trial.heal();
      await trial.publishAll(events, 'after the network had failed in the middle,');
      await trial.mustHold(events, 'after the network had failed in the middle,');
    }
  },

  'in-order': async (trial) => {
    const events = [4, 1, 3, 0, 2, 9, 8].map((number) => sampleEvent(number));
    await trial.publishAll(events, 'the first time');
    const found = (await trial.stored()).map(({ index }) => index);
    if (!sameJson(found, [4, 1, 3, 0, 2, 9, 8])) throw trial.broken(`they arrived in the order ${found.join(', ')}`);
  },

  'any-id': async (trial) => {
    const events = unusualIds.map((id, number) => sampleEvent(number, { id: `s:o:${id}`, key: id, documentId: id }));
    await trial.publishAll(events, 'the first time');
    await trial.publishAll(events, 'the second time');
    await trial.mustHold(events, 'with unusual ids');
  },

  'hundred-at-once': async (trial) => {
    const events = sampleEvents(100);
    await trial.publishAll(events, 'in one call');
    await trial.publishAll(events, 'in one call, again,');
    await trial.mustHold(events, 'in one call');
  },

  'two-at-once': async (trial) => {
    const events = sampleEvents(10);
    await Promise.all([trial.publish(events), trial.publish(events)]);
    await trial.publishAll(events, 'after two calls at once');
    await trial.mustHold(events, 'after two calls at once');
  },

  'no-secrets': checkSecrets,
};

/** Answers that are none: nothing is accepted, and nothing is a bug. */
async function outages(trial: PublisherTrial): Promise<void> {
  const page = '<!doctype html><html><body>Sign in</body></html>';
  for (const fault of [
    'captive-portal',
    { status: 200, text: page },
    { status: 503 },
    { status: 429 },
    { status: 302 },
  ] as const) {
    trial.answerAll(fault);
    const outcome = await trial.publish(sampleEvents(3));
    trial.heal();
    const { accepted, conflicts = [] } = 'answer' in outcome ? outcome.answer : { accepted: [] };
    if (accepted.length + conflicts.length > 0) throw trial.broken('it takes an outage for an answer of the place');
  }
  await trial.publishAll(sampleEvents(3), 'after the outages');
}

async function refusedEvent(trial: PublisherTrial): Promise<void> {
  if (trial.world.refuse === undefined) return;
  const events = [20, 21, 22].map((number) => sampleEvent(number));
  const [first, refused, last] = events;
  if (first === undefined || refused === undefined || last === undefined) return;
  trial.world.refuse(refused.id);
  const outcome = await trial.publish(events);
  if ('error' in outcome) throw trial.broken(`one refused event makes it throw ${nameOf(outcome.error)}`);
  const { accepted, error } = outcome.answer;
  if (!accepted.includes(first.id) || !accepted.includes(last.id)) {
    throw trial.broken('a refused event keeps others from being accepted');
  }
  if (error === undefined) throw trial.broken('an event is refused, and `error` does not say why');
}
