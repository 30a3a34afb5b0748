import { asError, type ApiError } from "../api/http";
import { giveBack } from "../parts/giveBack";
import { router } from "./route.svelte";
import { ui } from "./ui.svelte";

/** What a person has asked for in its own place: whether it is under way, and why the last one failed. */
export class Attempt {
  busy = $state(false);
  failure = $state.raw<ApiError>();

  /** True if it was done. Its button may be off meanwhile, or go: the focus stays. */
  async run(what: () => Promise<unknown>): Promise<boolean> {
    const refocus = giveBack();
    this.busy = true;
    this.failure = undefined;
    try {
      await what();
    } catch (e) {
      this.failure = asError(e);
    }
    this.busy = false;
    void refocus();
    return !this.failure;
  }
}

/** True if it was done; why not is said in the page's one line for it, in the place where it was asked for. */
export async function attempt(work: Promise<unknown>): Promise<boolean> {
  const { place } = router;
  try {
    await work;
    ui.failures.delete(place);
    return true;
  } catch (e) {
    report(e, place);
    return false;
  }
}

/** Says why something failed over the composer, where it is in sight wherever the thread is scrolled to. */
export function report(e: unknown, place = router.place): void {
  const error = asError(e);
  if (error.status === 401) return; // the sign-in says it
  ui.failures.set(place, error);
  if (place === router.place) ui.drawer = false; // it would cover the line
}
