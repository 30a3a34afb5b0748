// Messages on their way: shown at once, kept until the server has them, sent once. What breaks is sent again with the
// same id, from which the server knows it: whatever the page shows meanwhile, and after a reload.
import { untrack } from "svelte";
import { ApiError, asError, ask, type Schema } from "../api/http";
import type { Stored } from "./attachments.svelte";
import type { Message } from "./entry.svelte";
import { keep, kept, keptSlots, onRemoved } from "./kept";
import { Retry } from "./retry.svelte";

export interface Outgoing {
  content: string;
  files: Stored[];
  multitask?: Schema["Multitask"];
  /** Of the first message: what its conversation is made with. */
  begin?: { agent?: string; model?: string };
}

export class OutboxItem {
  state = $state<"sending" | "waiting" | "refused" | "sent">("sending");
  problem = $state.raw<ApiError>();
  constructor(
    readonly message: Outgoing,
    readonly id = newId(),
    readonly at = Date.now(),
  ) {}
}

/** Names a message, so that the server takes it once. */
export function newId(): string {
  return crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`; // not where the page has no TLS
}

const longestWait = 30_000; // ms for an answer
const slots = "bobbin.out.";
const outboxes = new Map<string, Outbox>();

export class Outbox {
  items = $state.raw<OutboxItem[]>([]);
  readonly again = new Retry(() => this.sendWaiting());
  /** The open conversation hears of the runs that its messages begin. */
  onaccepted: ((run: Schema["Run"]) => void) | undefined;
  /** The server may have it already: it cannot be taken back. */
  posting = $state.raw<OutboxItem>();
  private asked = false;

  /** begin makes the conversation of messages that have none, and returns its outbox. */
  constructor(
    readonly session: string,
    private readonly begin?: (first: OutboxItem) => Promise<Outbox>,
  ) {
    outboxes.set(session, this);
    for (const slot of keptSlots(this.slot(""))) {
      const { at, ...message } = JSON.parse(kept(slot) || "{}") as Outgoing & { at?: number };
      if (at) this.items.push(new OutboxItem(message, slot.slice(this.slot("").length), at));
    }
    this.items.sort((a, b) => a.at - b.at);
    void this.sendWaiting();
  }

  get waiting(): number {
    return this.items.filter((o) => o.state === "waiting").length;
  }

  send(message: Outgoing): void {
    this.take([new OutboxItem(message)]);
  }

  retry(item: OutboxItem): void {
    item.state = "sending";
    item.problem = undefined;
    this.again.stop();
    void this.sendWaiting();
  }

  remove(item: OutboxItem): void {
    keep(this.slot(item.id), "");
    this.items = this.items.filter((o) => o !== item);
  }

  /** What the server has is no longer on its way. */
  settle(messages: Message[]): void {
    if (this.items.length === 0) return;
    const ids = new Set(messages.map((m) => m.client_message_id));
    for (const item of this.items) if (ids.has(item.id)) this.remove(item);
  }

  /** What was accepted is in the messages that are loaded next. */
  forgetSent(): void {
    this.items = this.items.filter((o) => o.state !== "sent");
  }

  /** Sends one after the other, so that their order is kept. Asked for while it is at it, it begins once more. */
  async sendWaiting(): Promise<void> {
    this.asked = true;
    if (this.posting) return;
    while (this.asked) {
      this.asked = false;
      while ((this.posting = this.items.find((o) => o.state === "sending" || o.state === "waiting"))) {
        if (!(await this.post(this.posting))) break;
      }
    }
    this.posting = undefined;
  }

  slot(id: string): string {
    return `${slots}${this.session}.${id}`;
  }

  private take(items: OutboxItem[]): void {
    for (const { id, at, message } of items) keep(this.slot(id), JSON.stringify({ ...message, at }));
    this.items = [...this.items, ...items];
    void this.sendWaiting();
  }

  /** False if what follows has to wait. */
  private async post(item: OutboxItem): Promise<boolean> {
    try {
      if (this.begin) await this.moveTo(await this.begin(item));
      else await this.accept(item);
      this.again.stop();
      return true;
    } catch (e) {
      const error = asError(e);
      const passes = error.passesIn > 0 || error.status === 401;
      for (const o of passes ? this.items.filter((o) => o === item || o.state === "sending") : [item]) {
        o.state = passes ? "waiting" : "refused";
        o.problem = error;
      }
      this.again.after(error);
      return !passes;
    }
  }

  private async moveTo(other: Outbox): Promise<void> {
    other.take(this.items);
    for (const item of this.items) this.remove(item);
  }

  private async accept(item: OutboxItem): Promise<void> {
    const { content, files, multitask } = item.message;
    const parts = files.map((f) => ({ blob_id: f.id }));
    const accepted = await ask<Schema["RunAccepted"]>(`sessions/${this.session}/messages`, {
      method: "POST",
      json: { content, client_message_id: item.id, source: "web", ...(parts.length && { parts }), ...(multitask && { multitask }) },
      headers: { Prefer: "respond-async" },
      signal: AbortSignal.timeout(longestWait),
    });
    keep(this.slot(item.id), "");
    item.state = "sent";
    this.onaccepted?.(accepted.run);
  }
}

export function outboxOf(session: string): Outbox {
  return outboxes.get(session) ?? untrack(() => new Outbox(session));
}

onRemoved(slots, (slot) => {
  for (const outbox of outboxes.values()) outbox.items = outbox.items.filter((o) => o.state !== "waiting" || outbox.slot(o.id) !== slot);
});

/** Sends all that waits, and what an earlier visit has left. */
export function sendAll(): void {
  for (const slot of keptSlots(slots)) outboxOf(slot.slice(slots.length).split(".")[0]!);
  outboxes.forEach((o) => void o.sendWaiting());
}
