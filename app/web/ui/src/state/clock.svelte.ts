import { createSubscriber } from "svelte/reactivity";

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 500);
  return () => clearInterval(timer);
});

/** The time in ms since 1970. What reads it is drawn anew as it passes. */
export function now(): number {
  subscribe();
  return Date.now();
}

/** Seconds until a moment, 0 = it is past. */
export function secondsUntil(at: number): number {
  return Math.max(0, Math.ceil((at - now()) / 1000));
}

/** Seconds since a moment. */
export function secondsSince(at: number): number {
  return Math.max(0, Math.round((now() - at) / 1000));
}
