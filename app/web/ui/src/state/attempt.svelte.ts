import { asError, type ApiError } from "../api/http";
import { ui } from "./ui.svelte";

/** What a person has asked for in its own place: whether it is under way, and why the last one failed. */
export class Attempt {
  busy = $state(false);
  failure = $state.raw<ApiError>();

  /** True if it was done. */
  async run(what: () => Promise<unknown>): Promise<boolean> {
    this.busy = true;
    this.failure = undefined;
    try {
      await what();
      return true;
    } catch (e) {
      this.failure = asError(e);
      return false;
    } finally {
      this.busy = false;
    }
  }
}

/** True if it was done; why not is said in the page's one line for it. */
export async function attempt(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    ui.failure = undefined;
    return true;
  } catch (e) {
    report(e);
    return false;
  }
}

/** Says why something failed over the composer, where it is in sight wherever the thread is scrolled to. */
export function report(e: unknown): void {
  const error = asError(e);
  if (error.status === 401) return; // the sign-in says it
  ui.failure = error;
  ui.drawer = false; // it would cover the line
}
