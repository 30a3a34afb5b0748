// What a version of the summary did, in numbers and words.
import { uncompacted } from "./chart";
import type { Context, Summary } from "./context.svelte";
import { count } from "../words";
import { words } from "./words";

const fixedSections = ["system", "tools", "pinned", "standing"];

export interface Part {
  name: "tools" | "summary" | "tail";
  tokens: number;
}

export interface Effect {
  before: number;
  after: number;
  /** Of the prompt, from the turn in which it came into use; else of the messages that it stands for. */
  ofPrompt: boolean;
  beforeParts: Part[];
  afterParts: Part[];
}

/** Undefined for what people made, before a prompt has it. */
export function effectOf(context: Context, summary: Summary): Effect | undefined {
  const number = context.turnOf(summary);
  const turn = context.turn(number);
  const before = turn ? uncompacted(context.turns, context.turns.indexOf(turn)) : 0;
  if (!before && byHand(summary)) return undefined;
  if (!turn || !before) {
    const { tokens_before, token_count } = summary;
    return {
      before: tokens_before,
      after: token_count,
      ofPrompt: false,
      beforeParts: [{ name: "tail", tokens: tokens_before }],
      afterParts: [{ name: "summary", tokens: token_count }],
    };
  }
  const sum = (names: string[], of = turn) => names.reduce((total, name) => total + (of.sections[name] ?? 0), 0);
  const parts = (all: number, wound: number): Part[] => [
    { name: "tools", tokens: sum(fixedSections) },
    { name: "summary", tokens: wound },
    { name: "tail", tokens: Math.max(0, all - sum(fixedSections) - wound) },
  ];
  const earlier = context.turn(number - 1);
  return {
    before,
    after: turn.used,
    ofPrompt: true,
    beforeParts: parts(before, earlier ? sum(["summary"], earlier) : 0),
    afterParts: parts(turn.used, sum(["summary"])),
  };
}

export function byHand(summary: Summary): boolean {
  return ["manual_edit", "restore"].includes(summary.trigger);
}

/** Before → after, as far as it is known. */
export function sizesOf(context: Context, summary: Summary): string {
  const effect = effectOf(context, summary);
  if (!effect) return words.tokens(summary.token_count);
  return `${effect.ofPrompt ? "" : words.messagesOnly}${count(effect.before)} → ${count(effect.after)}`;
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
    else parts.push(madeAhead(s) ? words.facts.ahead : words.facts.waited((s.duration_ns / 1e9).toFixed(1)));
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
