import type { Answer, FaultProxy } from '@afield/devserver';

/** What happens while the changes are brought to the server, each at the first write when so many of them are there. */
export interface Trouble {
  readonly at: number;
  readonly what: 'refused' | '503' | 'kill';
  /** Whether that write is done, and only its answer gets lost. */
  readonly isWritten: boolean;
}

/** Two outages and a kill in the middle of so many changes, in an order and at moments that come by chance. */
export function troublesOf(changes: number, random: () => number): readonly Trouble[] {
  const moments = [0, 1, 2].map((third) => Math.floor(changes * (0.05 + 0.3 * third + 0.2 * random())));
  const kinds: Trouble['what'][] = ['refused', '503', 'kill'];
  return moments.map((at) => {
    const [what = 'kill'] = kinds.splice(Math.floor(random() * kinds.length), 1);
    return { at, what, isWritten: random() < 0.5 };
  });
}

/** Waits for the write of this trouble, does what must happen then, and lets the browser have no answer. */
export function inTheMiddle(
  { at, isWritten }: Trouble,
  parts: { readonly proxy: FaultProxy; readonly database: string; readonly sent: () => Promise<number> },
  happen: () => Promise<void>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const noAnswer: Answer = { reset: true };
    let isOver = false;
    const stop = parts.proxy.intercept(async ({ method, database, path }, forward) => {
      if (isOver) return noAnswer;
      const isWrite = method === 'POST' && database === parts.database && path.endsWith('/_bulk_docs');
      if (!isWrite || (await parts.sent()) < at) return undefined;
      isOver = true;
      if (isWritten) await forward();
      await happen().then(resolve, reject);
      stop();
      return noAnswer;
    });
  });
}

/** The server is down in this way. */
export async function takeDown(proxy: FaultProxy, how: 'refused' | '503'): Promise<void> {
  if (how === 'refused') await proxy.setOutage('refused');
  else proxy.addRule({ do: { type: 'answer', status: 503, body: { error: 'down', reason: 'busy' } } });
}

export async function bringUp(proxy: FaultProxy): Promise<void> {
  proxy.clearRules();
  await proxy.setOutage(false);
}
