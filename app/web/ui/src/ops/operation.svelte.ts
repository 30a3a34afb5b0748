// What the operation shows: runs, deliveries, usage and memories of all conversations.
import { ask, type ApiError, type Schema } from "../api/http";
import { sessions } from "../state/sessions.svelte";
import { List } from "./list.svelte";

export type RunHead = Schema["RunHead"];
export type Delivery = Schema["Delivery"];
export type Memory = Schema["Memory"];
export type UsageRow = Schema["UsageRow"];
export type Filter = "active" | "failed" | "";

type Runs = List<RunHead, Schema["RunList"]>;
type Usage = List<UsageRow, Schema["UsageReport"]>;

export const usageDays = 14;

/** The day so many days ago, in UTC as the books are. */
export function utcDay(ago = 0): string {
  return new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
}

export class Operation {
  readonly active: Runs = new List("runs", () => ({ status: "active" }));
  readonly failed: Runs = new List("runs", () => ({ status: "failed" }));
  readonly all: Runs = new List("runs");
  readonly notDelivered: List<Delivery> = new List("deliveries", () => ({ state: "failed" }));
  readonly undelivered: List<Delivery> = new List("deliveries", () => ({ state: "pending" }));
  readonly deliveries: List<Delivery> = new List("deliveries");
  readonly usage: Usage = new List("usage", () => ({ group_by: "day_agent", from: utcDay(usageDays - 1), limit: 200 }));
  readonly today: Usage = new List("usage", () => ({ group_by: "session", from: utcDay(), limit: 200 }));
  readonly memories: List<Memory> = new List("memories");
  /** Titles of conversations that the list beside does not have. */
  private titles = $state.raw<Record<string, string>>({});

  /** What each part shows; the overview has the most telling of all. */
  private readonly parts: Record<string, { load(): Promise<void>; failure?: ApiError }[]> = {
    "": [this.active, this.failed, this.notDelivered, this.undelivered, this.usage, this.today, this.memories],
    runs: [this.active, this.failed, this.all],
    deliveries: [this.notDelivered, this.undelivered, this.deliveries],
    usage: [this.usage, this.today],
    memories: [this.memories],
  };

  async load(part: string): Promise<void> {
    await Promise.all((this.parts[part] ?? []).map((list) => list.load()));
    if (part === "" || part === "usage") await this.loadTitles();
  }

  /** Why the part is not up to date. */
  failureOf(part: string): ApiError | undefined {
    return (this.parts[part] ?? []).find((list) => list.failure)?.failure;
  }

  runs(filter: Filter): Runs {
    return { active: this.active, failed: this.failed, "": this.all }[filter];
  }

  titleOf(session: string): string {
    return sessions.heads.find((h) => h.id === session)?.title || this.titles[session] || "";
  }

  /** The conversations of today with the most tokens. */
  get largest(): UsageRow[] {
    return this.today.items.filter((row) => row.key).toSorted((a, b) => tokensOf(b) - tokensOf(a)).slice(0, 5);
  }

  private async loadTitles(): Promise<void> {
    const unknown = this.largest.filter((row) => !this.titleOf(row.key));
    const found = await Promise.all(
      unknown.map((row) => ask<Schema["SessionDetail"]>(`sessions/${row.key}`).then((s) => [row.key, s.title], () => [row.key, ""])),
    );
    if (found.length) this.titles = { ...this.titles, ...(Object.fromEntries(found) as Record<string, string>) };
  }
}

export function tokensOf(row: Pick<UsageRow, "input_tokens" | "output_tokens">): number {
  return row.input_tokens + row.output_tokens;
}
