// Where each message stands in the next prompt. The thread's line asks for every message it draws.
import { page } from "../state/page.svelte";
import "./context.css";
import { contextOf, type Range } from "./context.svelte";
import { words } from "./threadWords";

export type Place = "verbatim" | "summary" | "compacted" | "masked" | "shortened" | "left_out";

class Places {
  /** The message that "Where is this message?" is open for. */
  asked = $state.raw<{ session: string; message: string; beside: HTMLElement }>();

  /** The last message that the summary in use covers; the thread draws the summary's card behind it. 0 = none. */
  get cursor(): number {
    return contextOf(page.conversation)?.cursor ?? 0;
  }

  /** The same for the line of a summary that was taken back; the thread draws Undone behind it. 0 = none. */
  get undone(): number {
    return contextOf(page.conversation)?.undone?.through_seq ?? 0;
  }

  of(seq: number): Place {
    const range = this.range(seq);
    if (range?.place === "excluded") return "left_out";
    if (range?.place !== "covered") return range?.place ?? "verbatim";
    return seq <= this.cursor ? "summary" : "compacted"; // by notes on a tool loop
  }

  /** What the message's head says about its place; empty = word for word. */
  label(seq: number): string {
    const place = this.of(seq);
    if (place === "verbatim") return "";
    return place === "summary" ? words.label.summary(this.range(seq)?.summary_version ?? 0) : words.label[place];
  }

  /** Opens "Where is this message?" beside the element. */
  explain(session: string, message: string, beside: HTMLElement): void {
    this.asked = { session, message, beside };
  }

  private range(seq: number): Range | undefined {
    const context = contextOf(page.conversation);
    const range = context?.ranges.find((r) => r.from_seq <= seq && seq <= r.through_seq);
    if (range) return range;
    // The answer has the newest ranges only; what came since it stands word for word.
    if (context && seq <= context.cursor) {
      return { from_seq: 1, through_seq: context.cursor, place: "covered", summary_version: context.active?.version };
    }
    return undefined;
  }
}

export const places = new Places();
