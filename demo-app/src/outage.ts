/** The switch of the fault proxy in front of the server. */
export interface OutageSwitch {
  isOn(): Promise<boolean>;
  set(on: boolean): Promise<void>;
}

/** @param control address of the fault proxy's control API */
export function outageSwitch(control: string): OutageSwitch {
  const address = `${control}/__faults/outage`;
  return {
    async isOn() {
      return readState(await fetch(address, { cache: 'no-store' }));
    },
    async set(on) {
      const body = JSON.stringify({ on });
      await readState(await fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body }));
    },
  };
}

async function readState(response: Response): Promise<boolean> {
  if (!response.ok) throw new Error(`The fault proxy answers ${String(response.status)}.`);
  const { outage } = (await response.json()) as { outage?: unknown };
  return outage !== false;
}
