// What a version of the summary did, in numbers and words.
import { columnsOf } from "./chart";
import type { Context, Summary } from "./context.svelte";
import { decimal } from "../text/format";
import { words } from "./words";

/** Sections of a prompt, or of what a summary stands for. */
export type Sections = { name: string; tokens: number }[];

/** Undefined for what people made, before a prompt has it. Of the prompt, from the turn in which it came into use; else of the messages that it stands for. */
export function effectOf(context: Context, summary: Summary): { before: Sections; after: Sections; ofPrompt: boolean } | undefined {
  const at = context.turns.findIndex((t) => t.summarized && t.summary_version === summary.version);
  const turn = columnsOf(context.turns)[at];
  if (turn?.without) {
    const summaryBefore = context.turns[at - 1]?.sections.summary ?? 0;
    const bar = (summary: number, all: number) => [
      { name: "tools", tokens: turn.fixed },
      { name: "summary", tokens: summary },
      { name: "tail", tokens: Math.max(0, all - turn.fixed - summary) },
    ];
    return { before: bar(summaryBefore, turn.without), after: bar(turn.summary, turn.used), ofPrompt: true };
  }
  if (byHand(summary)) return undefined;
  return { before: [{ name: "tail", tokens: summary.tokens_before }], after: [{ name: "summary", tokens: summary.token_count }], ofPrompt: false };
}

export function sumOf(sections: Sections): number {
  return sections.reduce((sum, s) => sum + s.tokens, 0);
}

export function byHand(summary: Summary): boolean {
  return ["manual_edit", "restore"].includes(summary.trigger);
}

/** Before → after, as far as it is known, and what that is of. */
export function sizesOf(context: Context, summary: Summary): string {
  const effect = effectOf(context, summary);
  if (!effect) return words.textOf(summary.token_count);
  return words.sizes(effect.ofPrompt, sumOf(effect.before), sumOf(effect.after));
}

/** Prepared before it was needed: it waited for a trigger. */
export function madeAhead(summary: Summary): boolean {
  return Boolean(summary.activated_at) && Date.parse(summary.activated_at!) - Date.parse(summary.created_at) > 1000;
}

export function withoutModel(summary: Summary): boolean {
  return !summary.model && Boolean(summary.note) && !byHand(summary);
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
