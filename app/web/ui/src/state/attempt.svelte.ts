import { asError, type ApiError } from "../api/http";

/** What a person has asked for: whether it is under way, and why the last one failed. */
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
