// The steps of a run on one time axis: model calls, tools, summaries, and what waited for a person.
import type { Schema } from "../api/http";
import { words as thread } from "../context/threadWords";
import { hasEnded, type Run } from "../state/conversation.svelte";
import type { Call, Happened, Working } from "./run.svelte";
import { sentenceOf } from "../problems.svelte";
import { count } from "../words";
import { words } from "./words";

export interface Step {
  /** Counted from 1; tools that were called together share one. */
  number: number;
  kind: "model" | "tool" | "summary" | "wait";
  name: string;
  what: string;
  /** In ms since 1970. */
  from: number;
  to: number;
  live: boolean;
  bad: boolean;
  call?: Call;
}

export interface Told {
  run: Run;
  calls: Call[];
  happened: Happened[];
  working?: Working;
}

export const modelNode = "llm_node";
export const toolNode = "tool_node";
const slotNode = "model_slot"; // no node of the graph: the model's call waits for a slot of its server

type Unnumbered = Omit<Step, "number">;

export function stepsOf(told: Told, now: number): Step[] {
  const steps = [...modelSteps(told, now), ...toolSteps(told, now), ...waits(told, now), ...lostSummaries(told)];
  steps.sort((a, b) => a.from - b.from || a.to - b.to);
  let number = 0;
  return steps.map((step, i) => {
    const together = i > 0 && step.kind === steps[i - 1]!.kind && (step.kind === "tool" || step.kind === "wait");
    return { ...step, number: together ? number : ++number };
  });
}

function modelSteps({ run, calls, happened, working }: Told, now: number): Unnumbered[] {
  const answers = happened.filter((h) => h.name === "message.created" && h.data.message?.role === "assistant");
  const summaries = happened.filter((h) => h.name === "context.completed" && !h.data.ahead);
  const steps = calls.map((call): Unnumbered => {
    const to = Date.parse(call.created_at);
    const failure = call.error && sentenceOf(`model_${call.error}`, words.callFailed(call.error));
    const step = { name: modelNode, from: to - call.duration_ns / 1e6, to, live: false, bad: Boolean(call.error), call };
    if (call.purpose === "summary") {
      const at = summaries.findIndex((h) => h.at >= to - 1);
      const told = call.error || at < 0 ? undefined : summaries.splice(at, 1)[0];
      return { ...step, kind: "summary", name: words.summaryOf(told?.data.version ?? 0), what: failure || summaryText(told) };
    }
    if (failure) return { ...step, kind: "model", what: failure };
    const asked = answers.shift()?.data.message?.tool_calls?.length ?? 0;
    return { ...step, kind: "model", what: asked ? words.asksFor(asked) : words.writes };
  });
  // A version that was ready came into use, or one was made without a model.
  for (const h of summaries) {
    steps.push({ kind: "summary", name: words.summaryOf(h.data.version ?? 0), what: summaryText(h), from: h.at, to: h.at, live: false, bad: false });
  }
  const summarizing = happened.findLast((h) => h.name.startsWith("context.") && h.name !== "context.warning");
  if (hasEnded(run) || !working) return steps;
  const live = { from: working.since, to: now, live: true, bad: false };
  if (summarizing?.name === "context.started" && !summarizing.data.ahead) {
    steps.push({ ...live, kind: "summary", name: words.summaryOf(0), what: words.thinks, from: summarizing.at });
  } else if (working.node === slotNode) {
    steps.push({ ...live, kind: "model", name: modelNode, what: words.waitsForSlot });
  } else if (working.node === modelNode && !steps.some((s) => s.to > working.since)) {
    steps.push({ ...live, kind: "model", name: modelNode, what: words.thinks });
  }
  return steps;
}

function summaryText(told: Happened | undefined): string {
  if (!told) return ""; // one of its parts, or made outside of the run
  const { kind, messages_covered = 0, tokens_before = 0, tokens_after = 0 } = told.data;
  const text = words.summarized(messages_covered, tokens_before, tokens_after);
  return kind === "run" ? [words.notes, text].filter(Boolean).join(", ") : text;
}

/** Summaries that came to nothing, at the moment when that was told. */
function lostSummaries({ happened }: Told): Unnumbered[] {
  const say: Record<string, (why: string) => string> = { "context.failed": words.summaryFailed, "context.skipped": words.summarySkipped };
  return happened
    .filter((h) => say[h.name] && !h.data.ahead)
    .map((h) => ({ kind: "summary", name: words.summaryOf(0), what: say[h.name]!(thread.reason(h.data.reason ?? "")), from: h.at, to: h.at, live: false, bad: h.name === "context.failed" }));
}

function toolSteps({ run, happened }: Told, now: number): Unnumbered[] {
  const ends = new Map(happened.filter((h) => h.name === "tool.finished").map((h) => [h.data.tool_call_id, h]));
  return happened
    .filter((h) => h.name === "tool.started")
    .map((h): Unnumbered => {
      const end = ends.get(h.data.tool_call_id);
      const over = hasEnded(run);
      const preview = (end?.data.preview ?? "").trim().split("\n", 1)[0]!.slice(0, 200);
      return {
        kind: "tool", name: h.data.name ?? "", from: h.at, to: end?.at ?? (over ? Date.parse(run.finished_at ?? "") : now),
        what: end ? preview : over ? words.toolStopped : words.toolRuns, live: !end && !over, bad: end?.data.status === "failed",
      };
    });
}

function waits({ run, happened }: Told, now: number): Unnumbered[] {
  const newest = new Map(happened.filter((h) => h.name.startsWith("approval.")).map((h) => [h.data.approval!.id, h.data.approval!]));
  return [...newest.values()].map((a: Schema["Approval"]) => {
    const open = a.status === "open" && !hasEnded(run);
    return {
      kind: "wait", name: a.tool, from: Date.parse(a.requested_at), to: a.decided_at ? Date.parse(a.decided_at) : open ? now : Date.parse(run.finished_at ?? a.requested_at),
      what: open ? words.waits : words.by(words.decided[a.status === "open" ? "closed" : a.status], a.decided_by ?? ""), live: false, bad: a.status === "denied",
    };
  });
}

/** How long something of the steps was at work, in ms; they are in the order of their beginnings. */
export function spanOf(steps: Step[]): number {
  let [sum, until] = [0, 0];
  for (const { from, to } of steps) {
    sum += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return sum;
}

/** Marks of an axis from 0 to so many ms: at most six, at round numbers. */
export function marksOf(span: number): { at: number; text: string }[] {
  const [unit, name] = span > 180_000 ? [60_000, "min"] : span >= 1000 ? [1000, "s"] : [1, "ms"];
  const rough = span / unit / 5;
  const ten = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-6)));
  const size = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= rough)!;
  const marks = [];
  for (let n = 0; n * size * unit <= span * 0.97; n++) {
    const value = count(Number((n * size).toPrecision(3)));
    marks.push({ at: n * size * unit, text: n === 0 ? `0 ${name}` : value });
  }
  return marks;
}
