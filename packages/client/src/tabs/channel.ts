import type { Channel } from '../model/environment.js';

/** A BroadcastChannel, where the engine has one; else a channel that nobody hears. */
export function broadcastChannel(name: string, news: () => void): Channel {
  if (typeof BroadcastChannel !== 'function') return silent;
  const channel = new BroadcastChannel(name);
  channel.onmessage = news;
  let isOpen = true;
  return {
    announce: () => {
      if (isOpen) channel.postMessage({ v: 1, news: true });
    },
    close: () => {
      isOpen = false;
      channel.close();
    },
  };
}

const silent: Channel = { announce: () => undefined, close: () => undefined };
