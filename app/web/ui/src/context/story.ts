// What a version of the summary did, in words.
import { decimal } from "../text/format";
import type { Context, Summary } from "./context.svelte";
import { withoutModel } from "./facts";
import { words } from "./words";

/** Prepared before it was needed: it waited for a trigger. */
function madeAhead(summary: Summary): boolean {
  return Boolean(summary.activated_at) && Date.parse(summary.activated_at!) - Date.parse(summary.created_at) > 1000;
}

/** Turns that had begun when something happened; 0 before the first. */
function turnAt(context: Context, at: string): number {
  const n = context.turns.findLastIndex((t) => Date.parse(t.at) <= Date.parse(at));
  return n < 0 ? context.turnsOmitted : context.turnsOmitted + n + 1;
}

/** The list's second line. */
export function shortFacts(context: Context, s: Summary): string {
  const turn = context.turnOf(s) || turnAt(context, s.activated_at ?? s.created_at);
  const parts: string[] = [];
  if (s.kind === "run") parts.push(words.facts.notes);
  if (turn) parts.push(words.facts.turn(turn));
  if (s.trigger === "manual_edit") parts.push(words.facts.edited);
  else if (s.trigger === "restore") parts.push(words.facts.restored);
  else {
    parts.push(words.facts.added(s.messages_added));
    if (withoutModel(s)) parts.push(words.facts.noModel);
    else parts.push(madeAhead(s) ? words.facts.ahead : words.facts.waited(decimal(s.duration_ns / 1e9)));
  }
  return parts.join(" · ");
}

/** Why and when it came into use, in sentences. */
export function story(context: Context, s: Summary): string {
  if (s.trigger === "manual_edit") return words.editedBy;
  if (s.trigger === "restore") return words.restoredAs(s.note ?? "");
  const used = context.turnOf(s) || turnAt(context, s.activated_at ?? s.created_at);
  const why = words.why(s.trigger, context.turn(used)?.trigger ?? 0);
  const made = turnAt(context, s.created_at);
  let text = s.trigger === "manual" ? words.madeNow : madeAhead(s) && made ? words.madeAhead(made, used, why) : used ? words.madeAt(used, why) : "";
  if (s.focus) text += words.focus(s.focus);
  return text + words.addedTo(s.messages_added, context.before(s)?.version ?? 0);
}
