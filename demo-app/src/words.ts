import type {
  BulkOperationState,
  BulkOperationStatus,
  ClientStatus,
  ErrorSummary,
  FailedOperation,
  PublisherStatus,
  TransferStatus,
} from '@afield/client';

/** How something is going, for colour and icon. */
export type Mood = 'good' | 'busy' | 'waiting' | 'bad';

export interface Words {
  readonly text: string;
  readonly mood: Mood;
}

/** What a person is told about each state of a bulk operation. */
export const states: Record<BulkOperationState, Words> = {
  queued: { text: 'Waits for its turn', mood: 'waiting' },
  planning: { text: 'Works out what has to change', mood: 'busy' },
  running: { text: 'Working on it', mood: 'busy' },
  'waiting-retry': { text: 'That did not work. It will be tried again', mood: 'waiting' },
  'waiting-auth': { text: 'Please sign in again, then it goes on', mood: 'bad' },
  'waiting-network': { text: 'No network. It goes on when the network is back', mood: 'waiting' },
  'waiting-storage': { text: 'This device’s storage does not answer. It will be tried again', mood: 'waiting' },
  'waiting-handler': { text: 'Needs a newer version of this app', mood: 'bad' },
  'waiting-index': { text: 'Waits until this device has read its records', mood: 'waiting' },
  paused: { text: 'Paused', mood: 'waiting' },
  done: { text: 'Done', mood: 'good' },
  'done-with-failures': { text: 'Done, but not for all of them', mood: 'bad' },
  failed: { text: 'Stopped by a fault in this app', mood: 'bad' },
  cancelled: { text: 'Cancelled. What was done stays', mood: 'waiting' },
};

/** One bulk operation. With the target `local`, done means done on this device: `push` says the rest. */
export function wordsOfBulk(bulk: BulkOperationStatus, push: TransferStatus): Words {
  const words = states[bulk.state];
  // What a plan says of a request that cannot be done is said to people.
  if (bulk.state === 'failed' && bulk.bug?.name === 'PlanRefusedError') return { ...words, text: bulk.bug.stack };
  const isHereOnly = bulk.target === 'local' && push.state !== 'idle' && push.state !== 'off';
  if (!isHereOnly) return words;
  if (bulk.state === 'done') return { text: 'Done on this device, not yet at the server', mood: 'waiting' };
  if (bulk.state === 'done-with-failures') return { ...words, text: `${words.text}. Not yet at the server` };
  return words;
}

export function wordsOfTransfer(transfer: TransferStatus): Words {
  switch (transfer.state) {
    case 'off':
      return { text: 'Switched off', mood: 'waiting' };
    case 'idle':
      return { text: 'Up to date', mood: 'good' };
    case 'running':
      return { text: transfer.attempt > 1 ? 'Trying again' : 'Under way', mood: 'busy' };
    case 'waiting-retry':
    case 'waiting-auth':
    case 'waiting-network':
    case 'waiting-storage':
      return states[transfer.state];
  }
}

/** An event goes to the server only after its record: it may wait for that alone, while nothing is wrong with the events. */
export function wordsOfPublisher(publisher: PublisherStatus): Words {
  return waitsForRecords(publisher)
    ? { text: 'Waits until the server has the record', mood: 'waiting' }
    : wordsOfTransfer(publisher);
}

/** Whether what is not published waits for its record: on the way, or refused by the server. */
export function waitsForRecords(publisher: PublisherStatus): boolean {
  return isUnconfirmed(publisher) || (publisher.state === 'idle' && publisher.unpublished > 0);
}

/** Whether events wait for their records alone, and not for a server that is down: a record that it refuses, for one. */
function isUnconfirmed({ state, lastError }: TransferStatus): boolean {
  return state === 'waiting-retry' && lastError?.code === 'unconfirmed';
}

/** @param isOutage whether the server is switched off: then nothing new gets there, however quiet it looks */
export function wordsOfClient(status: ClientStatus, isOutage = false): Words {
  if (status.signInRequired) return states['waiting-auth'];
  if (!status.online) return { text: 'No network: changes are kept on this device', mood: 'waiting' };
  if (!status.leader) return { text: 'Another tab is doing the work', mood: 'busy' };
  const publishers = Object.values(status.publishers);
  const transfers = [status.push, status.pull, status.results, ...publishers];
  const waiting = transfers.find((one) => one.state.startsWith('waiting') && !isUnconfirmed(one));
  if (waiting) return { text: 'The server does not answer: changes are kept on this device', mood: 'waiting' };
  if (status.state === 'paused') return { text: 'A part of the queue is paused', mood: 'waiting' };
  if (status.state !== 'idle') return states[status.state];
  if (status.push.state === 'running' || (status.push.left ?? 0) > 0 || status.unreported > 0)
    return { text: 'Bringing changes to the server', mood: 'busy' };
  if (publishers.some(({ state }) => state === 'running'))
    return { text: 'Bringing events to the server', mood: 'busy' };
  const down = isOutage ? ' The server is down now.' : '';
  const open = openMatters(status);
  if (open !== '') return { text: `At the server, but ${open}.${down}`, mood: 'waiting' };
  if (isOutage) return { text: `Everything is at the server.${down}`, mood: 'waiting' };
  return { text: 'Everything is at the server', mood: 'good' };
}

/** What waits for a person, or is left over; an event of a change that failed waits with it. */
function openMatters({ failed, quarantined, unpublished }: ClientStatus): string {
  const matters = [
    ...(failed > 0 ? [`${count(failed, 'change', 'changes')} failed`] : []),
    ...(quarantined > 0 ? [`${count(quarantined, 'conflict waits', 'conflicts wait')} for a decision`] : []),
  ];
  if (matters.length === 0 && unpublished > 0)
    return `${count(unpublished, 'event is', 'events are')} not published yet`;
  return matters.join(' and ');
}

const errorClasses: Record<ErrorSummary['class'], string> = {
  network: 'The server can’t be reached',
  server: 'The server has trouble',
  auth: 'The server wants a sign-in',
  storage: 'This device’s storage has trouble',
  conflict: 'Someone else changed the same record',
  throttled: 'The server asks to wait',
  bug: 'A fault in this app',
};

export function wordsOfError(error: ErrorSummary): string {
  return errorClasses[error.class];
}

interface FailureWords {
  readonly what: string;
  /** What a person can do about it. */
  readonly next: string;
}

const failureCodes: Readonly<Record<string, FailureWords>> = {
  missing: {
    what: 'The record does not exist',
    next: 'Check whether it was deleted, or is not on this device yet. If it is there now, make the change again.',
  },
  guard_mismatch: {
    what: 'The record was changed by someone else in the meantime',
    next: 'Look at the record as it is now. If the change is still right, make it again.',
  },
  forbidden: {
    what: 'The server refuses this change',
    next: 'Correct the record so that it fits the server’s rule. The server still has it as it was before.',
  },
  no_id: {
    what: 'The change does not say which record it is for',
    next: 'Find out where the change comes from, name the record there, and queue it again.',
  },
  invalid_id: {
    what: 'The change names a record that can’t exist',
    next: 'Correct the name of the record where the change comes from, and queue it again.',
  },
  invalid_doc: {
    what: 'The record can’t be stored like this',
    next: 'Correct the fields that are named in the details, and make the change again.',
  },
  too_large: {
    what: 'The record is too large for the server',
    next: 'Make the record smaller, such as with fewer or smaller files, and make the change again.',
  },
  missing_stub: {
    what: 'A file that belongs to the record is missing',
    next: 'Attach the file again, then make the change again.',
  },
  circular_lineage: {
    what: 'The place would lie in itself',
    next: 'Choose a place that does not lie below this one.',
  },
  too_deep: {
    what: 'Too many places inside each other',
    next: 'Choose a place that is higher up.',
  },
  conflicting_content: {
    what: 'Another record has this name already',
    next: 'Compare the two under “Conflicts”, and choose one there. If both are needed, create this one under another name.',
  },
  crashed: {
    what: 'The app stopped again and again while it made this change',
    next: 'Make the change again later. If that stops the app too, tell those who look after it.',
  },
  unexpected: {
    what: 'The server does not take this change',
    next: 'Show the details to those who look after the server.',
  },
};

const otherFailure: FailureWords = {
  what: 'The change could not be made',
  next: 'Show the details to those who look after this app.',
};

/** What happened and what to do next. */
export function wordsOfFailure(code: string): FailureWords {
  return (Object.prototype.hasOwnProperty.call(failureCodes, code) ? failureCodes[code] : undefined) ?? otherFailure;
}

/**
 * What became of a failure that was retried or discarded.
 * @param all failures, the open ones included: a retry may have failed again
 */
export function wordsOfResolution(
  { resolution }: FailedOperation,
  bulkOperations: readonly BulkOperationStatus[],
  all: readonly FailedOperation[],
): Words {
  if (resolution?.how !== 'retried') return { text: 'Discarded', mood: 'waiting' };
  const { bulkOperationId, index } = resolution;
  const bulk = bulkOperations.find(({ id }) => id === bulkOperationId);
  if (bulk === undefined) return { text: 'Tried again', mood: 'waiting' };
  const again = `Tried again as #${String(bulk.sequence)}`;
  const failedAgain = all.some((failure) => failure.bulkOperationId === bulkOperationId && failure.index === index);
  if (failedAgain) return { text: `${again}. It failed again`, mood: 'bad' };
  // A batch that a cancel has cut off may have done more than it says: then only the rest knows.
  if (index < bulk.cursor) return { text: `${again}. It worked`, mood: 'good' };
  return { text: `${again}. ${states[bulk.state].text}`, mood: states[bulk.state].mood };
}

/** How many operations of it have no outcome: those that a fault or a cancel left undone. */
export function notDone({ total, applied, alreadyApplied, failed, resolved }: BulkOperationStatus): number {
  return Math.max(0, total - applied - alreadyApplied - failed - resolved);
}

const actions: Readonly<Record<string, string>> = {
  'set-parent': 'Move',
  'set-contact': 'Update contacts',
  create: 'Create',
  update: 'Update',
  delete: 'Delete',
  'meet-a-fault': 'Practice with a fault',
};

export function wordsOfAction(name: string): string {
  return Object.prototype.hasOwnProperty.call(actions, name) ? (actions[name] ?? name) : name;
}

const types: Readonly<Record<string, readonly [string, string]>> = {
  district_hospital: ['District', 'districts'],
  health_center: ['Health centre', 'health centres'],
  clinic: ['Clinic', 'clinics'],
  person: ['Person', 'persons'],
};

export function wordOfType(type: string): string {
  return types[type]?.[0] ?? type;
}

export function pluralOfType(type: string): string {
  return types[type]?.[1] ?? type;
}

/** `in 1:05`, `now`; never negative. */
export function countdown(until: number, now: number): string {
  const seconds = Math.ceil((until - now) / 1000);
  if (seconds <= 0) return 'now';
  return `in ${String(Math.floor(seconds / 60))}:${String(seconds % 60).padStart(2, '0')}`;
}

const numbers = new Intl.NumberFormat('en');

export function count(number: number, one: string, many: string): string {
  return `${numbers.format(number)} ${number === 1 ? one : many}`;
}
