// The visitor's conversation: made with the first message, found again in the same tab.
import { ApiError, asError, ask, type Schema } from "../api/http";
import { Conversation } from "../state/conversation.svelte";
import { timeZone } from "../text/format";
import { host } from "./host.svelte";

const slot = "bobbin.widget"; // in the frame's own storage, which is Bobbin's

class Chat {
  conversation = $state.raw<Conversation>();
  /** Why the conversation could not be made. */
  failure = $state.raw<ApiError>();
  /** The first message while its conversation is made. */
  first = $state("");

  start(): void {
    const id = kept();
    if (!id) return;
    this.conversation = new Conversation(id);
    void this.conversation.open();
  }

  /** Leaves the conversation; the next message begins another. */
  begin(): void {
    this.conversation?.close();
    this.conversation = undefined;
    this.failure = undefined;
    this.first = "";
    keep("");
  }

  async send(content: string): Promise<void> {
    const draft = { content, files: [] };
    if (this.conversation) return this.conversation.outbox.send(draft);
    this.first = content;
    this.failure = undefined;
    const agent = host.look?.agent;
    try {
      const session = await ask<Schema["Session"]>("sessions", { method: "POST", json: { source: "web", timezone: timeZone, ...(agent ? { agent } : {}) } });
      const conversation = new Conversation(session.id);
      conversation.session = session;
      conversation.outbox.send(draft);
      this.conversation = conversation;
      this.first = "";
      keep(session.id);
      void conversation.open();
    } catch (e) {
      this.failure = asError(e); // after a 401 the page gives another token first
    }
  }

  /** Goes on where a token was refused, or a request failed. */
  async again(): Promise<void> {
    if (this.first) return this.send(this.first);
    if (this.conversation) this.conversation.actionFailure = undefined;
    await this.conversation?.open();
    await this.conversation?.outbox.sendWaiting();
  }
}

function kept(): string {
  try {
    return sessionStorage.getItem(slot) ?? "";
  } catch {
    return "";
  }
}

function keep(id: string): void {
  try {
    sessionStorage.setItem(slot, id);
  } catch {
    // A browser without storage in frames begins anew with each page.
  }
}

export const chat = new Chat();
