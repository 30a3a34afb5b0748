// A run as it happened and happens: its stored events, then those of its conversation's feed, and its model calls.
import { asError, ask, type ApiError, type Schema } from "../api/http";
import { Feed, type ServerEvent } from "../api/sse";
import { hasEnded, type Conversation, type Run } from "../state/conversation.svelte";
import { ui } from "../state/ui.svelte";
import { dateOf, daysAgo, timeOf } from "../text/format";

export type Call = Schema["ModelCall"];
type Told<Kind extends keyof Schema["Events"]> = NonNullable<Schema["Events"][Kind]>;
type Data = Partial<
  Told<"run.started"> & Told<"message.created"> & Told<"tool.started"> & Told<"tool.finished"> & Told<"approval.decided"> & Told<"context.completed"> & Told<"node.started"> & Told<"message.discarded">
>;

/** What is told of a run, with its time in ms since 1970. */
export interface Happened {
  /** Its number in the conversation. */
  number: number;
  name: string;
  at: number;
  data: Data;
}

/** The node that is at work. */
export interface Working {
  node: string;
  since: number;
}

const quiet = 150; // ms without another change before the calls are loaded anew
const kept = /^(message\.created|message\.discarded|tool\.|approval\.|context\.)/;

export class RunWatch {
  run = $state.raw<Run>();
  calls = $state.raw<Call[]>([]);
  happened = $state.raw<Happened[]>([]);
  working = $state.raw<Working>();
  failure = $state.raw<ApiError>();
  callsFailure = $state.raw<ApiError>();
  /** The stored events are there. */
  loaded = $state(false);
  /** What is stored; it is closed where the conversation's feed goes on. */
  private feed: Feed | undefined;
  private timer = 0;
  private closed = false;

  constructor(
    readonly id: string,
    private readonly conversation: Conversation,
  ) {}

  async open(): Promise<void> {
    this.happened = [];
    this.conversation.onevent = (e) => this.receive(e);
    try {
      this.run = await ask<Run>(`runs/${this.id}`);
      this.failure = undefined;
    } catch (e) {
      this.failure = asError(e);
      return;
    }
    if (this.closed || (this.run.status === "queued" && this.run.attempt === 0)) return;
    void this.loadCalls();
    this.feed?.close();
    this.feed = new Feed({
      path: `runs/${this.id}/events`,
      onEvent: (e) => {
        this.receive(e);
        if (!e.id && this.conversation.following) this.feed?.close(); // all that is stored has come
      },
      onState: (state) => {
        if (state === "waiting") this.loaded = true;
        if (state === "waiting" && hasEnded(this.run)) this.feed?.close(); // events that are not kept have no end
      },
    });
  }

  close(): void {
    this.closed = true;
    this.conversation.onevent = undefined;
    clearTimeout(this.timer);
    this.feed?.close();
  }

  private receive(event: ServerEvent): void {
    if (event.event === "resync") return void this.open();
    let data: Data & { at?: string; run_id?: string };
    try {
      data = JSON.parse(event.data) as typeof data;
    } catch {
      return;
    }
    if (data.run_id !== this.id) return;
    const at = Date.parse(data.at ?? "");
    const number = Number(event.id);
    if (kept.test(event.event)) {
      if (this.happened.some((h) => h.number === number)) return;
      this.happened = [...this.happened, { number, name: event.event, at, data }].toSorted((a, b) => a.number - b.number);
      if (/^(message|context)\./.test(event.event)) this.refreshCalls();
    } else if (event.event === "node.started") {
      this.working = { node: data.node!, since: at };
    } else if (event.event === "node.finished") {
      this.working = undefined;
    } else if (event.event.startsWith("run.") && data.run) this.change(data.run);
    this.loaded ||= event.id === "" || this.run?.status !== "running";
  }

  /** Events have the run without its message's text. An old event does not wake a run that has ended. */
  private change(run: Run): void {
    const before = this.run;
    if (!before || run.attempt < before.attempt || (hasEnded(before) && !hasEnded(run))) return;
    this.run = { ...before, ...run, input: before.input, context: run.context ?? before.context };
    if (run.status === "running") return;
    this.working = undefined;
    this.feed?.close();
    this.refreshCalls();
  }

  private refreshCalls(): void {
    clearTimeout(this.timer);
    if (!this.closed) this.timer = window.setTimeout(() => void this.loadCalls(), quiet);
  }

  private async loadCalls(): Promise<void> {
    try {
      this.calls = (await ask<Schema["ModelCallPage"]>(`runs/${this.id}/calls`)).items;
      this.callsFailure = undefined;
    } catch (e) {
      this.callsFailure = asError(e);
    }
  }
}

/** When it was asked for: the time, and the day unless it is today. */
export function whenOf({ created_at: at }: Run): string {
  return `${daysAgo(at, ui.now) > 0 ? `${dateOf(at)}, ` : ""}${timeOf(at)}`;
}
