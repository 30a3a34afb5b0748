import type { ApiError } from "../api/http";

const longest = 15; // seconds

/** Does something again after failures that pass by themselves, later each time. */
export class Retry {
  /** When it is done again, in ms since 1970; 0 = it is not. */
  at = $state(0);
  private timer = 0;
  private failures = 0;

  constructor(private readonly again: () => unknown) {}

  after(error: ApiError): void {
    clearTimeout(this.timer);
    this.at = 0;
    if (!error.passesIn) return;
    const wait = Math.max(error.passesIn, Math.min(2 ** this.failures++, longest)) * 1000;
    this.at = Date.now() + wait;
    this.timer = window.setTimeout(() => this.now(), wait);
  }

  /** Ends the present wait. */
  now(): void {
    clearTimeout(this.timer);
    if (this.at) this.again();
    this.at = 0;
  }

  /** It was done, or nobody wants it any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.at = this.failures = 0;
  }
}
