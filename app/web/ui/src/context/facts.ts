// What a version of the summary did, in numbers.
import { columnsOf } from "./chart";
import type { Context, Summary } from "./context.svelte";
import { words } from "./threadWords";

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
  if (byHand(summary) || summary.tokens_before === summary.token_count) return undefined; // the latter is a copy of one
  return { before: [{ name: "tail", tokens: summary.tokens_before }], after: [{ name: "summary", tokens: summary.token_count }], ofPrompt: false };
}

/** With what is kept for the answer at the window's end, so that marks above a bar are to scale. */
export function reserveLast<S extends { name: string }>(sections: S[]): S[] {
  return sections.toSorted((a, b) => Number(a.name === "reserve") - Number(b.name === "reserve"));
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

export function withoutModel(summary: Summary): boolean {
  return !summary.model && Boolean(summary.note) && !byHand(summary) && summary.strategy !== "edited";
}
