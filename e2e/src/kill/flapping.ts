import type { FaultProxy, FaultRule } from '@afield/devserver';

const server503: FaultRule['do'] = { type: 'answer', status: 503, body: { error: 'down', reason: 'busy' } };
const weathers: readonly (FaultRule | 'fine' | 'refused')[] = [
  'fine',
  'fine',
  'fine',
  { do: server503 },
  { when: { method: 'POST' }, do: { ...server503, commit: true } },
  { when: { method: 'POST' }, do: { type: 'reset', commit: true } },
  { do: { type: 'reset' } },
  { when: { path: '_bulk_docs' }, do: { type: 'cut', share: 0.5 } },
  'refused',
];

/** A network whose weather changes several times a second, until it is healed. */
export class Flapping {
  #timer: NodeJS.Timeout | undefined;
  #changing: Promise<unknown> = Promise.resolve();
  #isOver = false;
  /** How often it changed. */
  changes = 0;

  constructor(
    private readonly proxy: FaultProxy,
    private readonly random: () => number,
  ) {
    this.#next();
  }

  /** From now on everything gets through. */
  async heal(): Promise<void> {
    this.#isOver = true;
    clearTimeout(this.#timer);
    await this.#changing;
    await this.#set('fine');
  }

  #next(): void {
    this.#timer = setTimeout(
      () => {
        const weather = weathers[Math.floor(this.random() * weathers.length)] ?? 'fine';
        this.changes += 1;
        this.#changing = this.#set(weather).then(() => {
          if (!this.#isOver) this.#next();
        });
      },
      100 + this.random() * 500,
    );
  }

  async #set(weather: (typeof weathers)[number]): Promise<void> {
    await this.proxy.setOutage(weather === 'refused' ? 'refused' : false);
    this.proxy.clearRules();
    if (typeof weather !== 'string') this.proxy.addRule(weather);
  }
}
