import { spawn, type ChildProcess } from 'node:child_process';
import { chromiumArguments } from '@afield/demo-app/host';

/** One life of a Chromium on a profile on disk, in a process group of its own. */
export class Browser {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(executable: string, profile: string, address: string) {
    const own = ['--headless=new', '--no-default-browser-check', '--disable-breakpad', `--user-data-dir=${profile}`];
    this.#child = spawn(executable, [...chromiumArguments, ...own, address], { detached: true, stdio: 'ignore' });
    this.#ended = new Promise((resolve, reject) => {
      this.#child.once('exit', () => {
        resolve();
      });
      this.#child.once('error', reject);
    });
    this.#ended.catch(() => undefined); // said by `kill`
  }

  /** SIGKILL to all processes of this browser at once, and to no other. Resolves when it is gone. */
  async kill(): Promise<void> {
    const { pid } = this.#child;
    if (pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null) {
      process.kill(-pid, 'SIGKILL');
    }
    await this.#ended;
  }
}
