// The list of conversations: pages from the API, kept up to date by the feed of heads.
import { ApiError, asError, ask, type Schema } from "../api/http";
import { Feed, type ServerEvent } from "../api/sse";
import { timeZone } from "../text/format";
import { words } from "../words";
import { attempt } from "./attempt.svelte";
import { auth } from "./auth.svelte";
import { Retry } from "./retry.svelte";
import { router, sessionHref } from "./route.svelte";
import { store, stored, ui } from "./ui.svelte";

export type Session = Schema["Session"];

/** What the list needs of a session. */
export type Head = Pick<Session, "id" | "title" | "source" | "status" | "updated_at"> & { archived: boolean };

const seenSlot = "bobbin.seen";
const mostSeen = 500;

class Sessions {
  heads = $state.raw<Head[]>([]);
  loaded = $state(false);
  /** Changes arrive as they happen. */
  live = $state(false);
  /** Why the list did not load. */
  failure = $state.raw<ApiError>();
  /** Why changes do not arrive, if it does not pass by itself. */
  feedFailure = $state.raw<ApiError>();
  /** Why the page after it did not: a press asks again. */
  pageFailure = $state.raw<ApiError>();
  cursor = $state.raw<string | null>(null);
  showArchived = $state(false);
  /** Sessions whose last run failed while this page looked on. */
  failed = $state.raw<ReadonlySet<string>>(new Set());
  /** Hears of a conversation that was deleted. */
  ondeleted: ((id: string) => void) | undefined;
  private seen = $state.raw<Record<string, string>>(readSeen());
  private readonly since = this.firstVisit();
  private feed: Feed | undefined;
  /** What the feed has brought while the list loads: it is newer than the list. */
  private missed: ServerEvent[] | undefined;

  /** For a first load that failed. */
  readonly again = new Retry(() => this.load());

  async load(): Promise<void> {
    const missed: ServerEvent[] = (this.missed = []);
    try {
      const page = await this.fetchPage();
      if (missed !== this.missed) return; // asked for again since
      this.missed = undefined;
      this.heads = page.items.map(headOf);
      for (const event of missed) this.receive(event);
      this.cursor = page.next_cursor;
      this.loaded = true;
      this.failure = this.pageFailure = undefined;
      this.again.stop();
      this.follow();
    } catch (e) {
      if (missed !== this.missed) return;
      this.missed = undefined;
      for (const event of missed) this.receive(event);
      this.failure = asError(e);
      this.again.after(this.failure);
      if (auth.trying && !this.failure.passesIn) auth.refused(this.failure, auth.secret); // it was the sign-in's question
    }
  }

  async loadMore(): Promise<void> {
    const cursor = this.cursor;
    if (!cursor) return;
    this.cursor = null;
    this.pageFailure = undefined;
    try {
      const page = await this.fetchPage(cursor);
      this.cursor = page.next_cursor;
      this.merge(page.items.map(headOf));
    } catch (e) {
      this.cursor = cursor;
      this.pageFailure = asError(e);
    }
  }

  /** Asks for changes once more. */
  followNow(): void {
    this.feed?.again.now();
    this.follow();
  }

  toggleArchived(): void {
    this.showArchived = !this.showArchived;
    void this.load();
  }

  /** With a key it is made once, however often it is asked for. */
  async create(fields: { agent?: string; model?: string; title?: string; temporary?: boolean }, key = ""): Promise<Session> {
    const json = { source: "web", timezone: timeZone, ...fields };
    const session = await ask<Session>("sessions", { method: "POST", json, headers: key ? { "Idempotency-Key": key } : {} });
    this.update(session);
    return session;
  }

  /** The list shows the title at once; one that is refused is taken back. */
  async rename(id: string, title: string): Promise<void> {
    const before = this.heads.find((h) => h.id === id);
    if (before) this.merge([{ ...before, title }]);
    try {
      this.update(await ask<Session>(`sessions/${id}`, { method: "PATCH", json: { title } }));
    } catch (e) {
      if (before) this.merge([before]);
      throw e;
    }
  }

  async archive(id: string): Promise<void> {
    await ask(`sessions/${id}`, { method: "DELETE" });
    const head = this.heads.find((h) => h.id === id);
    if (head) this.merge([{ ...head, archived: true }]);
    if (router.current.session === id) router.go("#/");
    ui.toast(words.archived, () => void attempt(this.bringBack(id)));
  }

  async bringBack(id: string): Promise<void> {
    this.update(await ask<Session>(`sessions/${id}`, { method: "PATCH", json: { archived: false } }));
    router.go(sessionHref(id));
  }

  /** Takes over what the open conversation's own feed says. */
  update(session: Session): void {
    if (session.temporary) return;
    this.merge([headOf(session)]);
  }

  markFailed(id: string, failed: boolean): void {
    if (this.failed.has(id) === failed) return;
    const next = new Set(this.failed);
    if (failed) next.add(id);
    else next.delete(id);
    this.failed = next;
  }

  /** What was read stays in this browser: the API has no read marker. */
  markSeen(id: string, at: string): void {
    if ((this.seen[id] ?? "") >= at) return;
    const entries = Object.entries({ ...this.seen, [id]: at });
    this.seen = Object.fromEntries(entries.sort((a, b) => b[1].localeCompare(a[1])).slice(0, mostSeen));
    store(seenSlot, JSON.stringify(this.seen));
  }

  unread(head: Head): boolean {
    return head.updated_at > (this.seen[head.id] ?? this.since) && head.id !== router.current.session;
  }

  private merge(heads: Head[]): void {
    const byId = new Map(this.heads.map((h) => [h.id, h]));
    for (const head of heads) byId.set(head.id, head);
    const all = [...byId.values()].filter((h) => this.showArchived || !h.archived);
    this.heads = all.sort((a, b) => b.updated_at.localeCompare(a.updated_at));
  }

  private fetchPage(cursor?: string): Promise<Schema["SessionPage"]> {
    const limit = cursor ? 50 : Math.min(Math.max(50, this.heads.length), 200); // what is shown stays after a resync
    const query = { limit, cursor, archived: this.showArchived || undefined };
    return ask<Schema["SessionPage"]>("sessions", { query });
  }

  private follow(): void {
    if (this.feed) return;
    this.feed = new Feed({
      path: "events",
      onEvent: (e) => this.receive(e),
      onState: (state, error) => {
        this.live = state === "open";
        if (state !== "connecting") this.feedFailure = error?.passesIn || error?.status === 401 ? undefined : error;
        if (state === "closed" && error) this.feed = undefined; // again after the sign-in, or a press
      },
    });
  }

  private receive(event: ServerEvent): void {
    if (event.event === "resync") return void this.load();
    if (event.event !== "session.head") return;
    this.missed?.push(event);
    const { session_id: id, deleted, archived = false, ...said } = JSON.parse(event.data) as Schema["SessionHeadEvent"];
    if (deleted) {
      this.heads = this.heads.filter((h) => h.id !== id);
      return this.ondeleted?.(id);
    }
    const known = this.heads.find((h) => h.id === id);
    const unknown = { title: "", source: "api", status: "idle", updated_at: new Date().toISOString() } as const;
    this.merge([{ ...unknown, ...known, ...said, id, archived }]);
  }

  private firstVisit(): string {
    const known = stored("bobbin.since", "");
    if (known) return known;
    const now = new Date().toISOString();
    store("bobbin.since", now);
    return now;
  }
}

function headOf(s: Session): Head {
  return { ...s, archived: Boolean(s.archived_at) };
}

function readSeen(): Record<string, string> {
  try {
    return JSON.parse(stored(seenSlot, "{}")) as Record<string, string>;
  } catch {
    return {};
  }
}

export const sessions = new Sessions();
