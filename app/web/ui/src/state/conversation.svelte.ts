// The open conversation: its messages near the reader, its run, and its feed.
import { SvelteMap } from "svelte/reactivity";
import { ApiError, asError, ask, type Request, type Schema } from "../api/http";
import { Feed, type FeedState, type ServerEvent } from "../api/sse";
import { words } from "../words";
import { attempt } from "./attempt.svelte";
import { auth } from "./auth.svelte";
import { Entry, type Message } from "./entry.svelte";
import { outboxOf, type Outbox } from "./outbox.svelte";
import { Retry } from "./retry.svelte";
import { sessions } from "./sessions.svelte";
import { ui } from "./ui.svelte";

export type Session = Schema["Session"];
export type Run = Schema["Run"];
export type Approval = Schema["Approval"];

/** A tool call as the feed reports it; older calls have only their messages. */
export interface ToolCall {
  startedAt: number;
  finishedAt?: number;
}

export interface Summarizing {
  since: number;
  /** Prepared in the background: no message waits for it. */
  ahead: boolean;
  messages?: number;
}

type Told<Kind extends keyof Schema["Events"]> = NonNullable<Schema["Events"][Kind]>;
/** What events say; which of it depends on their kind. */
type EventData = Partial<
  Told<"run.started"> & Told<"message.created"> & Told<"message.delta"> & Told<"tool.started"> & Told<"approval.decided"> & Told<"context.started"> & Told<"session.updated"> & Told<"error">
>;

const pageSize = 50;
const mostEntries = 200; // in the DOM; pages beyond it are loaded again when they come near

export class Conversation {
  session = $state.raw<Session>();
  /** The loaded part of the current path, oldest first; it has no gaps. */
  entries = $state.raw<Entry[]>([]);
  /** Messages that wait for their turn on the server. */
  pending = $state.raw<Message[]>([]);
  hasBefore = $state(false);
  hasAfter = $state(false);
  loading = $state(true);
  failure = $state.raw<ApiError>();
  feedState = $state<FeedState>("connecting");
  feedError = $state.raw<ApiError>();
  readonly runs = new SvelteMap<string, Run>();
  readonly approvals = new SvelteMap<string, Approval>();
  readonly tools = new SvelteMap<string, ToolCall>();
  activeRun = $state.raw<Run>();
  summarizing = $state.raw<Summarizing>();
  /** Grows when the next prompt may have changed: load the context anew. */
  contextVersion = $state(0);
  /** The latest context.warning of the present run. */
  warning = $state.raw<{ trigger: string; reason: string }>();
  resynced = $state(false);
  /** Why the messages before or after those that are loaded did not come. */
  pageFailure = $state.raw<{ before: boolean; error: ApiError }>();
  /** Gets all that the feed brings, too. */
  onevent: ((event: ServerEvent) => void) | undefined;
  readonly outbox: Outbox;
  /** For a first load that failed. */
  readonly again = new Retry(() => this.open(this.wanted));

  feed = $state.raw<Feed>();
  private lastEvent = 0;
  private frame = 0;
  private growing = new Set<Entry>();
  private wanted = 0;
  private closed = false;
  private paging = false;
  /** Where the runs go on that are older than those that were loaded; empty = there are none. */
  private runsBefore: string | undefined;
  /** The lists of runs have come: what they lack is asked for by those who show it. */
  private runsListed = $state(false);
  private readonly askedRuns = new Set<string>();
  /** Of each question for messages that is on its way: those that were changed meanwhile. */
  private readonly asked = new Set<Map<string, { message: Message; number: number }>>();
  private checking = false;
  /** The path has changed: the events of its run do not say which messages have siblings. */
  private forked = false;
  /** How often it has changed: what was asked of an earlier path is not shown. */
  private paths = 0;

  constructor(readonly id: string) {
    this.outbox = outboxOf(id);
    this.outbox.forgetSent();
    this.outbox.onaccepted = (run) => this.noteRun(run);
  }

  /** Its feed has begun, and misses nothing from then on. */
  get following(): boolean {
    return this.feed !== undefined;
  }

  get running(): boolean {
    return this.activeRun !== undefined && this.activeRun.status !== "waiting";
  }

  /** How a run has ended, in words; empty = it has not. A filter may have cut its answer. */
  endOf(run: Run | undefined): string {
    const cut = this.entries.findLast((e) => e.runId === run?.id)?.message?.finish_reason === "content_filter";
    return { succeeded: cut ? words.brokeOff : words.answerComplete, failed: words.brokeOff, canceled: words.stopped }[run?.status as "failed"] ?? "";
  }

  get openApprovals(): Approval[] {
    return [...this.approvals.values()].filter((a) => a.status === "open");
  }

  /** Loads the page around a message (0 = the newest) and follows the feed from there. */
  async open(seq = 0): Promise<void> {
    this.loading = true;
    this.wanted = seq;
    this.pageFailure = undefined;
    try {
      const [session] = await Promise.all([ask<Session>(`sessions/${this.id}`), this.load(seq)]);
      if (this.closed) return;
      this.session = session;
      this.follow();
      await this.loadRuns(session);
      this.failure = undefined;
      this.again.stop();
    } catch (e) {
      this.failure = asError(e);
      if (!this.closed) this.again.after(this.failure);
    } finally {
      this.loading = false;
    }
  }

  close(): void {
    this.closed = true;
    this.again.stop();
    this.feed?.close();
    cancelAnimationFrame(this.frame);
  }

  retryNow(): void {
    if (this.feed) this.feed.again.now();
    else this.again.now();
  }

  /** Loads the newest page, or one around a message, in the place of what is shown, or of what is shown from there on. */
  async load(seq = 0, keep = false): Promise<void> {
    const query = seq
      ? { after: Math.max(0, seq - pageSize / 2), limit: pageSize }
      : { order: "desc", limit: pageSize };
    const before = new Set(this.entries.filter((e) => e.message));
    const path = this.paths;
    const page = await this.pageOf(query);
    if (path !== this.paths) return;
    const items = seq ? page.items : page.items.slice().reverse();
    const [oldest, newest] = [items[0]?.seq ?? 1, items.at(-1)?.seq ?? 0];
    const end = this.entries.findLastIndex((e) => before.has(e)) + 1;
    const known = this.entries.slice(0, end); // and pages that came meanwhile
    const live = this.entries.slice(end).filter((e) => e.seq > newest); // what is written, and what came since the question
    const older = keep && (oldest <= (known.at(-1)?.seq ?? 0) + 1 || !page.next_cursor) ? known.filter((e) => e.seq < oldest) : []; // nothing with a gap
    if (older.length === 0) this.hasBefore = oldest > 1 && (seq > 0 || page.next_cursor !== null);
    const away = this.hasAfter;
    this.hasAfter = seq ? page.next_cursor !== null : false;
    const entries = [...older, ...items.map((m) => this.entryOf(m))];
    const ids = new Set(entries.map((e) => e.id));
    this.entries = this.hasAfter ? entries : [...entries, ...live.filter((e) => !ids.has(e.id))];
    this.pending = page.pending;
    this.outbox.settle(items.concat(page.pending));
    if (!this.feed) this.lastEvent = page.last_event_id;
    else if (away && !this.hasAfter) this.follow(page.last_event_id);
  }

  /** A page of messages, with what was changed while it was on its way. */
  private async pageOf(query: Request["query"]): Promise<Schema["MessagePage"]> {
    const changed = new Map<string, { message: Message; number: number }>();
    this.asked.add(changed);
    try {
      const page = await ask<Schema["MessagePage"]>(`sessions/${this.id}/messages`, { query });
      const newest = (m: Message) => {
        const change = changed.get(m.id);
        return change && change.number > page.last_event_id ? withBranch(change.message, m) : m;
      };
      return { ...page, items: page.items.map(newest) };
    } finally {
      this.asked.delete(changed);
    }
  }

  /** Loads the newest page again, below what is older. */
  private async reload(): Promise<void> {
    await this.load(0, true).catch((e) => (this.failure = asError(e)));
    this.contextVersion++;
  }

  /** Loads the next page on a side of what is loaded; it is dropped if that was replaced meanwhile. */
  async loadPage(side: "before" | "after"): Promise<void> {
    const end = side === "after";
    const from = this.entries.at(end ? -1 : 0);
    if (!from?.message || this.paging || !(end ? this.hasAfter : this.hasBefore)) return;
    const { paths, hasAfter: away } = this;
    const fits = () => !this.closed && paths === this.paths && from === this.entries.at(end ? -1 : 0);
    this.paging = true;
    this.pageFailure = undefined;
    try {
      const page = await this.pageOf({ [side]: from.seq, limit: pageSize });
      if (!fits()) return;
      const items = page.items.map((m) => this.entryOf(m));
      const more = page.next_cursor !== null || items.length >= pageSize;
      const all = end ? [...this.entries, ...items] : [...items, ...this.entries];
      this.entries = end ? all.slice(-mostEntries) : all.slice(0, mostEntries);
      this.hasBefore = end ? this.hasBefore || all.length > mostEntries : more && (items[0]?.seq ?? 1) > 1;
      this.hasAfter = end ? more : this.hasAfter || all.length > mostEntries;
      if (away && !this.hasAfter) this.follow(page.last_event_id);
      void this.loadOlderRuns();
    } catch (e) {
      if (fits()) this.pageFailure = { before: !end, error: asError(e) };
    } finally {
      this.paging = false;
    }
  }

  /** Forgets the messages before one; they are loaded again when they come near. */
  forgetBefore(seq: number): void {
    const kept = this.entries.filter((e) => e.seq >= seq);
    this.hasBefore ||= kept.length < this.entries.length;
    this.entries = kept;
  }

  /** Whether the message is loaded, after loading the page around it if it was not; else the newest page is. */
  async reach(seq: number): Promise<boolean> {
    const loaded = () => this.entries.some((e) => e.seq === seq);
    if (!loaded()) await this.load(seq);
    if (loaded()) return true;
    await this.load();
    return false;
  }

  /** A title that is refused is taken back. */
  async rename(title: string): Promise<void> {
    const before = this.session!;
    this.session = { ...before, title };
    try {
      await sessions.rename(this.id, title);
    } catch (e) {
      if (this.session) this.session = { ...this.session, title: before.title };
      throw e;
    }
  }

  /** Another agent or model answers from then on. */
  async change(json: { agent?: string; model?: string }): Promise<void> {
    this.session = await ask<Session>(`sessions/${this.id}`, { method: "PATCH", json });
    this.contextVersion++;
  }

  async cancel(runId: string): Promise<void> {
    await ask(`runs/${runId}/cancel`, { method: "POST", json: {} });
  }

  /** Stops the answer that is being written. */
  stop(): void {
    const id = this.activeRun?.id;
    if (id) void attempt(this.cancel(id));
  }

  async decide(approval: Approval, body: Record<string, unknown>): Promise<void> {
    const decided = await ask<Approval>(`runs/${approval.run_id}/approvals/${approval.id}`, {
      method: "POST",
      json: body,
    });
    this.approvals.set(decided.id, decided);
  }

  /** Asks for the run's present state. */
  private async loadRun(id: string): Promise<void> {
    this.keepRun(await ask<Run>(`runs/${id}`));
  }

  /** A message of one's own was accepted: its run may begin before the feed is open. */
  noteRun(run: Run): void {
    if (this.runs.has(run.id)) return;
    this.keepRun(run);
    if (run.status === "running") this.activeRun = run;
  }

  /** Asks for the newest runs, with what they asked and who decided it. */
  async loadRuns(session: Session): Promise<void> {
    const before = await this.pageOfRuns({ limit: 20 });
    this.runsBefore ??= before;
    void this.loadOlderRuns();
    if (session.active_run_id && session.status !== "queued") {
      await this.loadRun(session.active_run_id);
      const run = this.runs.get(session.active_run_id)!;
      if (!hasEnded(run)) this.activeRun = run;
    }
    // A run that ended before the feed began has no end in it.
    if (this.activeRun && hasEnded(this.runs.get(this.activeRun.id))) this.activeRun = undefined;
    if (!this.activeRun) this.summarizing = undefined;
    this.entries = this.entries.filter((e) => e.message || !hasEnded(this.runs.get(e.runId)));
    this.contextVersion++;
  }

  private async pageOfRuns(query: { limit: number; cursor?: string }): Promise<string> {
    const page = await ask<Schema["RunPage"]>(`sessions/${this.id}/runs`, { query });
    for (const run of page.items) this.keepRun(run);
    return page.next_cursor ?? "";
  }

  /** Older messages have the agents that wrote them: a page of runs with each page of messages. */
  private async loadOlderRuns(): Promise<void> {
    const cursor = this.runsBefore;
    if (cursor && this.entries.some((e) => e.runId && !this.runs.has(e.runId))) {
      this.runsBefore = await this.pageOfRuns({ limit: pageSize, cursor }).catch(() => cursor);
    }
    this.runsListed = true;
  }

  /** Asks, once, for the run of a message in sight that the lists did not have: those of far messages and of branches. */
  needRun(id: string): void {
    if (!this.runsListed || !id || this.runs.has(id) || this.askedRuns.has(id)) return;
    this.askedRuns.add(id);
    this.loadRun(id).catch(() => this.askedRuns.delete(id)); // without it nothing is said
  }

  /** The conversation was deleted, by whomever. */
  end(error = new ApiError(404, "", "")): void {
    this.feed?.close();
    this.entries = this.pending = [];
    this.session = this.activeRun = undefined;
    this.hasBefore = this.hasAfter = false;
    this.failure = error;
  }

  /** An answer that was on its way while the run ended does not wake it again. */
  private keepRun(run: Run): void {
    const known = this.runs.get(run.id);
    if (hasEnded(known) && !hasEnded(run)) return;
    this.runs.set(run.id, { ...known, ...run });
    for (const a of run.approvals ?? []) {
      if (a.status !== "open" || (this.approvals.get(a.id)?.status ?? "open") === "open") this.approvals.set(a.id, a);
    }
  }

  private entryOf(m: Message): Entry {
    const known = this.entries.find((e) => e.id === m.id);
    if (!known) return new Entry(m.id, m);
    known.complete(m);
    return known;
  }

  /** Follows the feed after an event: at the end, that of its page, as what came before the end was loaded added no messages. */
  private follow(after = this.lastEvent): void {
    this.lastEvent = after;
    this.feed?.close();
    this.feed = new Feed({
      path: `sessions/${this.id}/events`,
      lastId: String(this.lastEvent),
      onEvent: (e) => {
        this.receive(e);
        this.onevent?.(e);
      },
      onState: (state, error) => {
        this.feedState = state;
        this.feedError = error;
        if (state === "open") void this.outbox.sendWaiting();
        if (error?.status === 404) this.end(error);
        if (state === "waiting") ui.announce(words.connectionLost);
      },
    });
  }

  private receive(event: ServerEvent): void {
    const number = Number(event.id) || 0;
    if (event.event === "resync") {
      this.lastEvent = number;
      this.resynced = true;
      return void this.open();
    }
    if (number && number <= this.lastEvent) return void this.check();
    if (number) this.lastEvent = number;
    let data: EventData;
    try {
      data = JSON.parse(event.data) as EventData;
    } catch {
      return;
    }
    this.apply(event.event, data);
  }

  /** An event that came twice or late: what is stored decides. */
  private async check(): Promise<void> {
    if (this.checking || this.hasAfter) return;
    this.checking = true;
    try {
      this.session = await ask<Session>(`sessions/${this.id}`);
      await this.load(0, true);
      await this.loadRuns(this.session);
    } catch {
      // the feed goes on
    } finally {
      this.checking = false;
    }
  }

  private apply(name: string, data: EventData): void {
    switch (name) {
      case "message.delta":
      case "reasoning.delta":
        return this.grow(data, name === "message.delta" ? "text" : "reasoning");
      case "message.started":
        if (!this.hasAfter && !this.find(data.message_id!)) {
          this.entries = [...this.entries, new Entry(data.message_id!, undefined, data.run_id)];
        }
        return;
      case "message.created":
        return this.add(data.message!);
      case "message.updated":
        return this.update(data.message!);
      case "message.discarded":
        this.entries = this.entries.filter((e) => e.id !== data.message_id);
        return;
      case "messages.imported":
        return void this.reload();
      case "run.queued":
        if (!this.pending.some((m) => m.id === data.message!.id)) this.pending = [...this.pending, data.message!];
        return this.outbox.settle([data.message!]);
      case "tool.started":
        this.tools.set(data.tool_call_id!, { startedAt: Date.parse(data.at!) });
        return;
      case "tool.finished": {
        const call = this.tools.get(data.tool_call_id!);
        if (call) this.tools.set(data.tool_call_id!, { ...call, finishedAt: Date.parse(data.at!) });
        return;
      }
      case "approval.requested":
      case "approval.decided":
        this.approvals.set(data.approval!.id, data.approval!);
        if (name === "approval.requested") ui.announce(words.question(data.approval!.tool));
        return;
      case "session.updated":
        if ((["agent", "model", "instructions"] as const).some((field) => data.session![field] !== this.session?.[field])) this.contextVersion++;
        this.session = data.session!;
        if (data.path) this.changePath(data.path);
        return;
      case "error":
        if (data.status === 401) {
          auth.problem = new ApiError(401, data.code ?? "", data.detail ?? "", data.request_id);
        }
        return;
      default:
        if (name.startsWith("run.") && data.run) this.changeRun(name, data.run);
        else if (name.startsWith("context.")) this.changeContext(name, data);
    }
  }

  private find(id: string): Entry | undefined {
    return this.entries.findLast((e) => e.id === id);
  }

  private grow(data: EventData, kind: "text" | "reasoning"): void {
    const entry = this.find(data.message_id!);
    if (!entry || entry.message) return;
    entry.append(kind, data.offset_utf16 ?? 0, data.text ?? "");
    this.growing.add(entry);
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      for (const e of this.growing) e.flush();
      this.growing.clear();
    });
  }

  private add(message: Message): void {
    this.pending = this.pending.filter((m) => m.id !== message.id);
    this.outbox.settle([message]);
    if (!message.run_id) this.contextVersion++; // imported: no run ends after it
    const known = this.find(message.id);
    if (known) {
      known.complete(message);
      this.entries = inOrder(this.entries);
    } else if (!this.hasAfter && message.on_path) {
      this.entries = inOrder([...this.entries, new Entry(message.id, message)]);
    }
  }

  private update(message: Message): void {
    this.pending = this.pending.filter((m) => m.id !== message.id || !message.deleted_at);
    for (const changed of this.asked) changed.set(message.id, { message, number: this.lastEvent });
    const known = this.find(message.id);
    if (!known?.message) return;
    known.complete(withBranch(message, known.message));
    this.contextVersion++;
  }

  /** What follows the fork is another text now; a run that caused it brings its messages itself. */
  private changePath(path: NonNullable<EventData["path"]>): void {
    const after = path.after_id ? (path.after_seq ?? 0) : 0;
    this.entries = this.entries.filter((e) => e.seq <= after);
    this.hasAfter = false;
    this.forked = true;
    this.paths++;
    void this.reload();
  }

  private changeRun(name: string, run: Run): void {
    this.keepRun(run);
    this.pending = this.pending.filter((m) => m.run_id !== run.id);
    if (this.session) {
      const status = name === "run.started" ? "running" : name === "run.waiting" ? "waiting" : "idle";
      const at = run.finished_at ?? this.session.updated_at;
      this.session = { ...this.session, status, updated_at: at > this.session.updated_at ? at : this.session.updated_at };
    }
    if (name === "run.started" || name === "run.waiting") {
      this.activeRun = run;
      if (name === "run.started") this.warning = undefined;
      return;
    }
    if (this.activeRun?.id === run.id || !this.activeRun) this.activeRun = undefined;
    this.summarizing = undefined;
    if (this.forked) void this.reload();
    this.forked = false;
    this.entries = this.entries.filter((e) => e.message || e.runId !== run.id);
    this.contextVersion++;
    ui.announce(this.endOf(run));
  }

  private changeContext(name: string, data: EventData): void {
    if (name === "context.started" && (data.kind ?? "rolling") === "rolling") {
      this.summarizing = { since: Date.now(), ahead: data.ahead ?? false, messages: data.messages_covered };
      if (!data.ahead) ui.announce(words.summarizing);
    } else if (name === "context.started") {
      return; // notes on a tool loop: nothing of the conversation changes
    } else if (name === "context.warning") {
      this.warning = { trigger: data.trigger ?? "", reason: data.reason ?? "" };
    } else this.summarizing = undefined;
    this.contextVersion++;
  }
}

export function hasEnded(run: Run | undefined): boolean {
  return run !== undefined && ["succeeded", "failed", "canceled"].includes(run.status);
}

/** Events omit what only lists know: a message's place among its siblings. */
function withBranch(message: Message, listed: Message): Message {
  return { ...message, branch: message.branch ?? listed.branch };
}

function inOrder(entries: Entry[]): Entry[] {
  for (let i = 1; i < entries.length; i++) {
    if (entries[i - 1]!.seq > entries[i]!.seq) return entries.toSorted((a, b) => (a.seq === b.seq ? 0 : a.seq - b.seq));
  }
  return entries;
}
