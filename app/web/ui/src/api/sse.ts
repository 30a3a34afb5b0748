// Event streams by fetch, since EventSource sends no Authorization header.
import { ApiError, asError, send } from "./http";

export interface ServerEvent {
  /** The number or cursor of the event, empty for those that are not stored. */
  id: string;
  event: string;
  data: string;
}

export type FeedState = "connecting" | "open" | "waiting" | "closed";

export interface FeedOptions {
  path: string;
  lastId?: string;
  onEvent: (event: ServerEvent) => void;
  /** retryAt: when the next attempt is made, in ms since 1970. */
  onState: (state: FeedState, error?: ApiError, retryAt?: number) => void;
}

const firstDelay = 500;
const longestDelay = 15_000;
const silence = 40_000; // the server sends a comment every 15 seconds

/** A stream that reconnects behind the last event that it delivered, until it is closed. */
export class Feed {
  private stopped = new AbortController();
  private wake: (() => void) | undefined;
  private delay = firstDelay;
  lastId: string;

  constructor(private readonly options: FeedOptions) {
    this.lastId = options.lastId ?? "";
    void this.run();
  }

  close(): void {
    this.stopped.abort();
    this.wake?.();
  }

  /** Ends the present wait, for a button or the browser's word that it is online again. */
  retryNow(): void {
    this.delay = firstDelay;
    this.wake?.();
  }

  private async run(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      this.options.onState("connecting");
      const error = await this.readOnce();
      if (this.stopped.signal.aborted) break;
      if (error && [401, 403, 404].includes(error.status)) {
        this.options.onState("closed", error);
        return;
      }
      const wait = Math.max(this.delay, (error?.retryAfter ?? 0) * 1000);
      this.options.onState("waiting", error, Date.now() + wait);
      this.delay = Math.min(this.delay * 2, longestDelay);
      await this.sleep(wait + Math.random() * 300);
    }
    this.options.onState("closed");
  }

  private async readOnce(): Promise<ApiError | undefined> {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    this.stopped.signal.addEventListener("abort", stop);
    let watchdog = setTimeout(stop, silence);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (this.lastId) headers["Last-Event-ID"] = this.lastId;
      const response = await send(this.options.path, { headers, signal: attempt.signal });
      this.delay = firstDelay;
      this.options.onState("open");
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return undefined;
        clearTimeout(watchdog);
        watchdog = setTimeout(stop, silence);
        for (const event of parser.push(value)) {
          if (event.id) this.lastId = event.id;
          if (event.data) this.options.onEvent(event);
        }
      }
    } catch (e) {
      return asError(e);
    } finally {
      clearTimeout(watchdog);
      this.stopped.signal.removeEventListener("abort", stop);
      attempt.abort();
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Cuts a stream into events; a piece may end anywhere, also between \r and \n. */
export class EventParser {
  private rest = "";
  private id = "";
  private event = "";
  private data: string[] = [];

  *push(piece: string): Generator<ServerEvent> {
    this.rest += piece;
    for (;;) {
      const end = this.rest.search(/\r\n|\n|\r(?!$)/);
      if (end < 0) return;
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + (this.rest.startsWith("\r\n", end) ? 2 : 1));
      if (line === "") {
        const event = { id: this.id, event: this.event || "message", data: this.data.join("\n") };
        const empty = !event.id && this.data.length === 0;
        this.id = this.event = "";
        this.data = [];
        if (!empty) yield event;
        continue;
      }
      this.field(line);
    }
  }

  private field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") this.id = value;
    else if (name === "event") this.event = value;
    else if (name === "data") this.data.push(value);
  }
}
