// Messages on their way: shown at once, kept while there is no connection, sent once.
import { ApiError, asError, ask, type Schema } from "../api/http";
import type { Conversation } from "./conversation.svelte";
import type { Message } from "./entry.svelte";
import { Retry } from "./retry.svelte";

export interface Draft {
  content: string;
  parts: Schema["FilePart"][];
  /** Names of the files, for the page only. */
  files: string[];
  multitask?: Schema["Multitask"];
}

export class Outgoing {
  readonly id = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;
  state = $state<"sending" | "waiting" | "refused">("sending");
  problem = $state.raw<ApiError>();
  constructor(readonly draft: Draft) {}
}

export class Outbox {
  items = $state.raw<Outgoing[]>([]);
  /** For what waits though there is a connection; else the feed says when it is back. */
  readonly again = new Retry(() => this.sendWaiting());
  private busy = false;

  constructor(private readonly conversation: Conversation) {}

  get waiting(): number {
    return this.items.filter((o) => o.state === "waiting").length;
  }

  send(draft: Draft): void {
    this.items = [...this.items, new Outgoing(draft)];
    void this.sendWaiting();
  }

  retry(item: Outgoing): void {
    item.state = "sending";
    item.problem = undefined;
    void this.sendWaiting();
  }

  remove(item: Outgoing): void {
    this.items = this.items.filter((o) => o !== item);
  }

  /** What the server has is no longer on its way. */
  settle(messages: Message[]): void {
    if (this.items.length === 0) return;
    const ids = new Set(messages.map((m) => m.client_message_id));
    this.items = this.items.filter((o) => !ids.has(o.id));
  }

  /** Sends one after the other, so that their order is kept. */
  async sendWaiting(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      for (const item of this.items) {
        if (item.state !== "refused" && !(await this.post(item))) break;
      }
    } finally {
      this.busy = false;
    }
    if (this.items.some((o) => o.state === "sending" && !this.posted.has(o.id))) void this.sendWaiting();
  }

  private posted = new Set<string>();

  private async post(item: Outgoing): Promise<boolean> {
    if (this.posted.has(item.id)) return true;
    const { content, parts, multitask } = item.draft;
    const json = {
      content,
      client_message_id: item.id,
      source: "web",
      ...(parts.length ? { parts } : {}),
      ...(multitask ? { multitask } : {}),
    };
    try {
      const accepted = await ask<Schema["RunAccepted"]>(`sessions/${this.conversation.id}/messages`, {
        method: "POST",
        json,
        headers: { Prefer: "respond-async" },
      });
      this.posted.add(item.id);
      this.again.stop();
      this.conversation.noteRun(accepted.run);
      return true;
    } catch (e) {
      const error = asError(e);
      item.state = error.passesIn || error.status === 401 ? "waiting" : "refused";
      item.problem = error;
      if (!error.offline) this.again.after(error);
      return item.state === "refused";
    }
  }
}
