// The thread of Slack that a conversation belongs to, and what of the conversation is not in it.
import { untrack } from "svelte";
import { asError, ask, type ApiError, type Schema } from "../api/http";
import { textOf } from "../language";
import type { Conversation } from "../state/conversation.svelte";
import type { Message } from "../state/entry.svelte";
import { words } from "./words";

export type Status = Schema["SlackThreadStatus"];
export type Fault = Schema["SlackFault"];
export type Mode = Schema["SlackMode"];

const written = 500; // ms between a message and its event, of which the status has the time
const settle = 1500; // ms that a post may take after what it shows
const every = 5000; // ms between two looks while Slack refuses what waits

export class Slack {
  /** undefined = not loaded, or the conversation has no thread. */
  status = $state.raw<Status>();
  failure = $state.raw<ApiError>();
  private timer = 0;

  constructor(private readonly conversation: Conversation) {
    $effect.root(() => {
      $effect(() => {
        if (!conversation.session?.slack) {
          this.status = undefined;
          return;
        }
        // What may be posted: a message, the end of a run, a change.
        void [conversation.entries.length, conversation.activeRun?.status, conversation.contextVersion];
        untrack(() => this.later(this.status ? settle : 0));
        return () => clearTimeout(this.timer);
      });
    });
  }

  get posts(): boolean {
    return this.status?.mode === "two_way" || this.status?.mode === "to_slack";
  }

  async load(): Promise<void> {
    try {
      this.take(await ask<Status>(`${this.path}`));
      this.failure = undefined;
    } catch (e) {
      this.failure = asError(e);
    }
  }

  async fix(fault: Fault, action: "send" | "look" | "dismiss"): Promise<void> {
    try {
      this.take(await ask<Status>(`${this.path}/posts/${fault.item_id}`, { method: "POST", json: { part: fault.part, action } }));
    } finally {
      this.later(settle);
    }
  }

  /** Attaches the conversation, or changes the mode of its thread. */
  async put(place: { team?: string; channel: string; thread: string; mode: Mode }): Promise<void> {
    await ask(this.path, { method: "PUT", json: place });
    const { session } = this.conversation;
    if (session) this.conversation.session = { ...session, slack: true };
    await this.load();
  }

  async detach(): Promise<void> {
    await ask(this.path, { method: "DELETE" });
    const { session } = this.conversation;
    if (session) this.conversation.session = { ...session, slack: false };
    this.status = undefined;
  }

  /** The first thing that is wrong with the posts of these messages. */
  faultOf(ids: string[]): Fault | undefined {
    return this.status?.faults?.find((f) => ids.includes(f.item_id));
  }

  /** Whether the message is one of those that Slack did not take yet; a post under way is not worth a line. */
  waits(message: Message): boolean {
    if (!this.status?.reason) return false;
    const since = Date.parse(this.status.behind_since ?? "") - written;
    return Boolean(this.posts && message.source !== "slack" && message.role !== "tool" && message.content && Date.parse(message.created_at) >= since);
  }

  private get path(): string {
    return `sessions/${this.conversation.id}/slack`;
  }

  private take(status: Status): void {
    this.status = status;
    if (status.behind_since && this.posts) this.later(status.reason ? every : settle);
  }

  private later(wait: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.load(), wait);
  }
}

/** What a refusal means, with Slack's own word for it; what the server says itself stands alone. */
export function reasonOf(reason: string): string {
  const code = /rate.?limit/.test(reason) ? "ratelimited" : (/[a-z]+(?:_[a-z]+)+/.exec(reason)?.[0] ?? "");
  const known = textOf(words.reasons, code, "");
  return known ? `${known} (${code})` : textOf(words.faults, reason, words.otherReason(reason));
}

/** The place in a link to a message of Slack; undefined if it is none. */
export function parseLink(link: string): { team?: string; channel: string; thread: string } | undefined {
  let url: URL;
  try {
    url = new URL(link.trim());
  } catch {
    return undefined;
  }
  const message = /\/archives\/([A-Z0-9]+)\/p(\d+)(\d{6})\/?$/.exec(url.pathname);
  if (message) return { channel: message[1]!, thread: url.searchParams.get("thread_ts") ?? `${message[2]}.${message[3]}` };
  const client = /\/client\/(T[A-Z0-9]+)\/([A-Z0-9]+)\/thread\/[A-Z0-9]+-(\d+\.\d{6})/.exec(url.pathname);
  if (client) return { team: client[1], channel: client[2]!, thread: client[3]! };
  return undefined;
}

const all = new WeakMap<Conversation, Slack>();

/** One for all parts of the page. */
export function slackOf(conversation: Conversation): Slack {
  let slack = all.get(conversation);
  if (!slack) {
    slack = untrack(() => new Slack(conversation));
    all.set(conversation, slack);
  }
  return slack;
}
