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
      for (let rest = ""; ; ) {
        const { done, value } = await reader.read();
        if (done) return undefined;
        clearTimeout(watchdog);
        watchdog = setTimeout(stop, silence);
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop()!;
        for (const event of blocks.map(parseEvent)) {
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

/** An event from the lines between two empty ones. */
function parseEvent(lines: string): ServerEvent {
  const fields: Record<string, string[]> = {};
  for (const line of lines.split("\n")) {
    const [, name = "", value = ""] = /^(\w+)(?:: ?(.*))?$/s.exec(line) ?? [];
    (fields[name] ??= []).push(value);
  }
  return { id: fields.id?.at(-1) ?? "", event: fields.event?.at(-1) ?? "message", data: fields.data?.join("\n") ?? "" };
}
