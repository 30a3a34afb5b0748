// What the operation shows: runs, deliveries, usage and memories of all conversations.
import { ask, type ApiError, type Schema } from "../api/http";
import { auth } from "../state/auth.svelte";
import { sessions } from "../state/sessions.svelte";
import { List } from "./list.svelte";

export type RunHead = Schema["RunHead"];
export type Delivery = Schema["Delivery"];
export type Memory = Schema["Memory"];
export type UsageRow = Schema["UsageRow"];
export type Status = RunHead["status"] | "active" | "";
export type Tab = "" | "runs" | "deliveries" | "usage" | "memories";

type Runs = List<RunHead, Schema["RunList"]>;
type Usage = List<UsageRow, Schema["UsageReport"]>;

/** The lengths of time that the usage is shown for, in days. */
export const ranges = [7, 14, 30, 90];
const usagePages = 25;

/** The day so many days ago, in UTC as the books are. */
export function utcDay(ago = 0): string {
  return new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
}

export class Operation {
  /** Which runs are listed; empty = all. */
  filter = $state<{ status: Status; agent: string; error: string }>({ status: "active", agent: "", error: "" });
  /** Days of usage. */
  days = $state(14);
  readonly runs: Runs = new List("runs", () => ({ ...this.filter }));
  readonly waiting: Runs = new List("runs", () => ({ status: "waiting", order: "asc" }));
  readonly failed: Runs = new List("runs", () => ({ status: "failed" }));
  readonly notDelivered: List<Delivery> = new List("deliveries", () => ({ state: "failed" }));
  readonly undelivered: List<Delivery> = new List("deliveries", () => ({ state: "pending" }));
  readonly deliveries: List<Delivery> = new List("deliveries");
  /** Conversations with a thread there. */
  readonly inSlack: List<Schema["Session"]> = new List("sessions", () => ({ slack: true, limit: 6 }));
  readonly usage: Usage = new List("usage", () => ({ group_by: "day_agent", from: utcDay(this.days - 1), limit: 200 }), usagePages);
  /** The conversations of today with the most tokens, and the total of all. */
  readonly today: Usage = new List("usage", () => ({ group_by: "session", sort: "tokens", from: utcDay(), limit: 5 }));
  readonly memories: List<Memory> = new List("memories");
  /** Titles of conversations that the list beside does not have. */
  private titles = $state.raw<Record<string, string>>({});

  /** What each part shows; the overview has the most telling of all. */
  private readonly parts: Record<Tab, { load(): Promise<void>; failure?: ApiError }[]> = {
    "": [this.runs, this.waiting, this.failed, this.notDelivered, this.undelivered, this.inSlack, this.usage, this.today, this.memories],
    runs: [this.runs, this.waiting, this.failed],
    deliveries: [this.deliveries, this.inSlack],
    usage: [this.usage],
    memories: [this.memories],
  };

  async load(part: Tab): Promise<void> {
    if (!auth.isOwner) return;
    await Promise.all(this.parts[part].map((list) => list.load()));
    if (part === "") await this.loadTitles();
  }

  /** Why the part is not up to date. */
  failureOf(part: Tab): ApiError | undefined {
    return this.parts[part].find((list) => list.failure)?.failure;
  }

  titleOf(session: string): string {
    return sessions.heads.find((h) => h.id === session)?.title || this.titles[session] || "";
  }

  private async loadTitles(): Promise<void> {
    const unknown = this.today.items.filter((row) => row.key && !this.titleOf(row.key));
    const found = await Promise.all(
      unknown.map((row) => ask<Schema["SessionDetail"]>(`sessions/${row.key}`).then((s) => [row.key, s.title], () => [row.key, ""])),
    );
    if (found.length) this.titles = { ...this.titles, ...(Object.fromEntries(found) as Record<string, string>) };
  }
}

export function tokensOf(row: Pick<UsageRow, "input_tokens" | "output_tokens">): number {
  return row.input_tokens + row.output_tokens;
}
