// Where each message stands in the next prompt. The thread's line asks for every message it draws.

export type Place = "verbatim" | "summary" | "masked" | "shortened" | "left_out";

class Places {
  /** The last message that the summary in use covers; the thread draws the summary's card behind it. 0 = none. */
  cursor = $state(0);

  of(seq: number): Place {
    return seq <= this.cursor ? "summary" : "verbatim";
  }

  /** What the message's head says about its place; empty = word for word. */
  label(seq: number): string {
    return this.of(seq) === "verbatim" ? "" : this.of(seq);
  }

  /** Opens "Where is this message?" beside the element. */
  explain(_session: string, _message: string, _beside: HTMLElement): void {}
}

export const places = new Places();
