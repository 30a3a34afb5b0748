// What the server says about the next prompt of a conversation, and what the parts of the page derive from it.
import { untrack } from "svelte";
import { ApiError, asError, ask, type Schema } from "../api/http";
import { attempt } from "../state/attempt.svelte";
import type { Conversation } from "../state/conversation.svelte";
import { ui } from "../state/ui.svelte";
import { count, words as page } from "../words";
import { words } from "./threadWords";

export type Report = Schema["ContextReport"];
export type Plan = Schema["ContextPlan"];
export type Summary = Schema["Summary"];

type Turns = Schema["ContextTurns"];
/** A stretch of the log that stands in one place of the next prompt. */
export type Range = Turns["ranges"][number];
/** The last prompt of a run; `without` has the covered messages in place of the summary. */
export type Turn = Turns["turns"][number];

export type Mood = "unknown" | "floor" | "work" | "tight" | "due" | "rest";

const quiet = 150; // ms without another change before the context is loaded anew
const pause = 400; // ms without a key before the draft is planned
const summaryPage = 30;

export class Context {
  report = $state.raw<Report>();
  ranges = $state.raw<Range[]>([]);
  turns = $state.raw<Turn[]>([]);
  turnsOmitted = $state(0);
  /** The newest versions, newest first. */
  summaries = $state.raw<Summary[]>([]);
  olderSummaries = $state.raw<string | null>(null);
  failure = $state.raw<ApiError>();
  /** What the draft would bring about; absent without one. */
  plan = $state.raw<Plan>();
  /** The summary's text while it is edited, and the version that the text replaces. */
  draft = $state<{ text: string; version: number }>();
  private timer = 0;
  private loading: Promise<void> | undefined;
  private again = false;

  constructor(readonly conversation: Conversation) {}

  /** The version in use, if its text is loaded. */
  get active(): Summary | undefined {
    const version = this.report?.summary_version;
    return this.summaries.find((s) => s.version === version);
  }

  /** The version that was taken back or erased last, until another one covers as much. */
  get undone(): Summary | undefined {
    const { active } = this;
    const last = this.summaries.find((s) => s.kind === "rolling" && s.state !== "prepared" && s !== active);
    if (!last || !["undone", "erased"].includes(last.state)) return undefined;
    return (active?.through_seq ?? 0) < last.through_seq ? last : undefined;
  }

  /** The last message that the card's summary covers; 0 = there is none. */
  get cursor(): number {
    return this.active?.through_seq ?? 0;
  }

  /** What an undo of this version returns to: the text before an edit, else a version that covered less. */
  before(summary: Summary): Summary | undefined {
    const edited = summary.trigger === "manual_edit";
    const usable = (s: Summary) => s.kind === "rolling" && s.version < summary.version && s.activated_at && s.state !== "erased";
    return this.summaries.find((s) => usable(s) && (edited ? s.through_seq === summary.through_seq : s.through_seq < summary.through_seq));
  }

  /** The turn in which a version came into use, counted from 1; 0 = none yet. */
  turnOf(summary: Summary): number {
    const at = this.turns.findIndex((t) => t.summarized && t.summary_version === summary.version);
    return at < 0 ? 0 : this.turnsOmitted + at + 1;
  }

  turn(number: number): Turn | undefined {
    return this.turns[number - this.turnsOmitted - 1];
  }

  /** The next prompt, with the draft, does not have all messages whole. */
  private get cut(): boolean {
    const coverage = (this.plan ?? this.report)?.coverage;
    return Boolean(coverage?.shortened || coverage?.left_out);
  }

  get floor(): string {
    const floor = this.plan && !this.plan.fits ? this.plan.floor : undefined;
    return floor ? words.floor(floor) : "";
  }

  get mood(): Mood {
    const { report, plan, conversation } = this;
    if (!report) return "unknown";
    if (this.floor) return "floor";
    if (conversation.summarizing && !conversation.summarizing.ahead) return "work";
    const open = report.breaker === "open" && report.planned > report.trigger;
    if (conversation.warning?.trigger === "near_limit" || open) return "tight";
    const brings = plan?.activate || (plan?.summarize && plan.summarize.when !== "ahead");
    return report.will_trigger || brings || this.cut ? "due" : "rest";
  }

  get percent(): number {
    return this.report ? Math.round((100 * this.report.used) / this.report.usable) : 0;
  }

  /** Tokens that the draft adds; 0 = none, or not known yet. */
  get draftTokens(): number {
    return this.plan && this.report ? Math.max(0, this.plan.context.used - this.report.used) : 0;
  }

  /** The meter in words, without the last period: what the next prompt, with the draft, does not have whole, then what comes of it. */
  get hint(): string {
    const { report, plan } = this;
    if (!report) return this.failure?.status === 403 ? words.noContext : "";
    if (this.floor) return this.floor;
    const { shortened, left_out } = (plan ?? report).coverage;
    return [shortened && words.stayShortened(shortened), left_out && words.stayLeftOut(left_out), this.next(report)].filter(Boolean).join(". ");
  }

  private next(report: Report): string {
    const { plan, mood } = this;
    if (mood === "work") return page.summarizing;
    if (mood === "tight") return this.conversation.warning ? words.warning(this.conversation.warning) : words.tight;
    if (mood === "due" && plan?.activate) return words.activates(plan.activate);
    if (mood === "due" && plan?.summarize) return words.dueDraft(plan.summarize.messages, plan.summarize.when === "now");
    if (report.will_trigger) return !plan && report.triggers.some((t) => t.fires) ? words.due : words.turnsLeft(0);
    const left = (plan?.context ?? report).turns_left;
    if (left === undefined || (this.cut && !report.triggers.length)) return ""; // it is full
    return report.triggers.length ? words.turnsLeft(left) : words.fullIn(left);
  }

  get sentence(): string {
    const { report } = this;
    if (!report) return words.meterUnknown;
    const used = (report.calibration.measured ? "" : "≈ ") + count(report.used);
    return words.meter(used, report.usable, this.percent, this.hint).trim();
  }

  /** Loads all of it, after the changes that come now have come. */
  refresh(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.load(), quiet);
  }

  /** Loads all of it; done when nothing that was asked for meanwhile is missing. */
  load(): Promise<void> {
    this.again = true;
    this.loading ??= this.loadAll().finally(() => (this.loading = undefined));
    return this.loading;
  }

  private async loadAll(): Promise<void> {
    while (this.again) {
      this.again = false;
      await this.loadOnce();
    }
  }

  private async loadOnce(): Promise<void> {
    const session = `sessions/${this.conversation.id}`;
    const asked = ask<Turns>(`${session}/context/turns`);
    asked.catch(() => {}); // read below, unless the report fails first
    let report: Report | undefined;
    try {
      report = await ask<Report>(`${session}/context`);
      this.report ??= report;
      // After the report: they have the version that it names, so that the card does not go.
      const [turns, page] = await Promise.all([asked, ask<Schema["SummaryPage"]>(`${session}/summaries`, { query: { limit: summaryPage } })]);
      const before = this.report === report ? Infinity : this.cursor;
      this.report = report; // with its summaries, so that the card does not go and come
      this.ranges = turns.ranges;
      this.turns = turns.turns;
      this.turnsOmitted = turns.turns_omitted;
      this.summaries = page.items;
      this.olderSummaries = page.next_cursor;
      this.failure = undefined;
      if (this.cursor > before) wind();
    } catch (e) {
      if (report) this.report = report;
      this.failure = asError(e);
    }
  }

  async loadOlderSummaries(): Promise<void> {
    const query = { limit: summaryPage, cursor: this.olderSummaries ?? undefined };
    const page = await ask<Schema["SummaryPage"]>(`sessions/${this.conversation.id}/summaries`, { query });
    this.summaries = [...this.summaries, ...page.items];
    this.olderSummaries = page.next_cursor;
  }

  /** Plans the draft after a pause; the answer says what was to be cleaned up. */
  planDraft(content: string, parts: { blob_id: string }[]): () => void {
    if (!content.trim() && parts.length === 0) {
      this.plan = undefined;
      return () => {};
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const plan = await this.dryRun({ content, parts }, stop.signal);
        if (!stop.signal.aborted) this.plan = plan;
      } catch {
        if (!stop.signal.aborted) this.plan = undefined; // the meter shows what is known without it
      }
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }

  dryRun(json: { content?: string; parts?: { blob_id: string }[]; model?: string; agent?: string }, signal?: AbortSignal): Promise<Plan> {
    return ask<Plan>(`sessions/${this.conversation.id}/context/plan`, { method: "POST", json, signal });
  }

  async summarize(focus: string): Promise<Summary> {
    const json = focus.trim() ? { focus: focus.trim() } : {};
    const summary = await ask<Summary>(`sessions/${this.conversation.id}/summarize`, { method: "POST", json });
    await this.load();
    return summary;
  }

  /** Returns to a version, 0 = none. With a text, a toast says so and offers the way back. */
  async restore(version: number, said = ""): Promise<void> {
    const left = this.active;
    await ask(`sessions/${this.conversation.id}/summaries/${version}/restore`, { method: "POST", json: {} });
    await this.load();
    if (said) ui.toast(said, left && (() => this.undo(left.version)));
  }

  /** The same for a toast, which is gone when it fails. */
  undo(version: number): void {
    void attempt(this.restore(version));
  }

  async saveDraft(version: number): Promise<void> {
    const content = this.draft!.text;
    try {
      await ask(`sessions/${this.conversation.id}/summary`, { method: "PUT", json: { content, version } });
      this.draft = undefined;
    } finally {
      await this.load();
    }
  }
}

/** Lets the thread's line wind up where the new summary covers messages. */
function wind(): void {
  const { classList } = document.documentElement;
  classList.add("winding");
  setTimeout(() => classList.remove("winding"), 400);
}

const contexts = new WeakMap<Conversation, Context>();

/** The context of a conversation: one for all parts of the page. */
export function contextOf(conversation: Conversation): Context;
export function contextOf(conversation: Conversation | undefined): Context | undefined;
export function contextOf(conversation: Conversation | undefined): Context | undefined {
  if (!conversation) return undefined;
  let context = contexts.get(conversation);
  if (!context) {
    // Its state belongs to no effect, so that all of them see its changes.
    context = untrack(() => new Context(conversation));
    contexts.set(conversation, context);
  }
  return context;
}
