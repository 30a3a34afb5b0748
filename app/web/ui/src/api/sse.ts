// Event streams by fetch, since EventSource sends no Authorization header.
import { Retry } from "../state/retry.svelte";
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
  onState: (state: FeedState, error?: ApiError) => void;
}

const firstDelay = 0.5; // seconds
const silence = 40_000; // the server sends a comment every 15 seconds

/** A stream that reconnects behind the last event that it delivered, until it is closed. */
export class Feed {
  readonly again = new Retry(() => void this.run());
  private stopped = new AbortController();
  lastId: string;

  constructor(private readonly options: FeedOptions) {
    this.lastId = options.lastId ?? "";
    void this.run();
  }

  close(): void {
    this.stopped.abort();
    this.again.stop();
    this.options.onState("closed");
  }

  private async run(): Promise<void> {
    this.options.onState("connecting");
    const error = await this.readOnce();
    if (this.stopped.signal.aborted) return;
    if (error && [401, 404].includes(error.status)) return this.options.onState("closed", error);
    this.again.after(error, error?.retryAfter || firstDelay);
    this.options.onState("waiting", error);
  }

  private async readOnce(): Promise<ApiError | undefined> {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    let watchdog = setTimeout(stop, silence);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (this.lastId) headers["Last-Event-ID"] = this.lastId;
      const response = await send(this.options.path, { headers, signal: AbortSignal.any([attempt.signal, this.stopped.signal]) });
      this.again.stop();
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
      attempt.abort();
    }
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
