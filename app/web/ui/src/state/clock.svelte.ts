import { createSubscriber } from "svelte/reactivity";

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 500);
  return () => clearInterval(timer);
});

/** Seconds until a moment, 0 = it is past. What reads it is drawn anew as they pass. */
export function secondsUntil(at: number): number {
  subscribe();
  return Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

/** Seconds since a moment, likewise. */
export function secondsSince(at: number): number {
  subscribe();
  return Math.max(0, Math.round((Date.now() - at) / 1000));
}
