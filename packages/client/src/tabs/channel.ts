import type { Channel } from '../model/environment.js';

/** A BroadcastChannel, where the engine has one; else a channel that nobody hears. */
export function broadcastChannel(name: string, news: (message?: unknown) => void): Channel {
  if (typeof BroadcastChannel !== 'function') return silent;
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }: MessageEvent<{ message?: unknown } | null>) => {
    news(data?.message);
  };
  let isOpen = true;
  return {
    announce: (message) => {
      if (isOpen) channel.postMessage({ v: 1, news: true, ...(message === undefined ? {} : { message }) });
    },
    close: () => {
      isOpen = false;
      channel.close();
    },
  };
}

const silent: Channel = { announce: () => undefined, close: () => undefined };
