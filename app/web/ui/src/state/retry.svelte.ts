import type { ApiError } from "../api/http";

const longest = 15; // seconds
const waiting = new Set<Retry>();
addEventListener("online", () => waiting.forEach((retry) => retry.now()));

/** Does something again after failures that pass by themselves, later each time; at once when the browser is online. */
export class Retry {
  /** When it is done again, in ms since 1970; 0 = it is not. */
  at = $state(0);
  private timer = 0;
  private failures = 0;

  constructor(private readonly again: () => unknown) {}

  /** Waits so many seconds at least; 0 = the failure does not pass. */
  after(error: ApiError | undefined, least = error?.passesIn): void {
    this.clear();
    if (!least) return;
    const wait = 1000 * (Math.max(least, Math.min(2 ** this.failures++ / 2, longest)) + Math.random() * 0.3);
    this.at = Date.now() + wait;
    this.timer = window.setTimeout(() => this.run(), wait);
    waiting.add(this);
  }

  /** Ends the present wait; the next ones are short again. */
  now(): void {
    this.failures = 0;
    this.run();
  }

  private run(): void {
    const waited = this.at > 0;
    this.clear();
    if (waited) this.again();
  }

  /** It was done, or nobody wants it any more. */
  stop(): void {
    this.clear();
    this.failures = 0;
  }

  private clear(): void {
    clearTimeout(this.timer);
    this.at = 0;
    waiting.delete(this);
  }
}
