import type { Schema } from "../api/http";

export type Message = Schema["Message"];

/** A message of the thread: complete, or growing while its text streams. */
export class Entry {
  /** Absent while the answer is being written. */
  message = $state.raw<Message>();
  /** The text so far; it is drawn once per frame, not once per piece. */
  text = $state("");
  reasoning = $state("");
  readonly runId: string;
  /** How long it thought, in s, if the page looked on; 0 = unknown. */
  thought = $state(0);
  private thinkingSince = 0;
  private readonly next = { text: "", reasoning: "" };
  /** Pieces that came before what stands in front of them, by their kinds and offsets. */
  private readonly early = new Map<string, string>();

  constructor(
    readonly id: string,
    message?: Message,
    runId = message?.run_id ?? "",
  ) {
    this.message = message;
    this.runId = runId;
  }

  get seq(): number {
    return this.message?.seq ?? Infinity;
  }

  get role(): Message["role"] {
    return this.message?.role ?? "assistant";
  }

  get content(): string {
    return this.message ? this.message.content : this.text;
  }

  /** Offsets count UTF-16 units, so this holds for pieces that come twice, too. */
  append(kind: "text" | "reasoning", offset: number, piece: string): void {
    const { next, early } = this;
    if (offset > next[kind].length) return void early.set(`${kind} ${offset}`, piece);
    next[kind] = next[kind].slice(0, offset) + piece;
    const at = next[kind].length;
    const following = early.get(`${kind} ${at}`);
    if (following) this.append(kind, at, following);
    if (kind === "text") this.endThought();
    else this.thinkingSince ||= Date.now();
  }

  private endThought(): void {
    if (this.thinkingSince && !this.thought) this.thought = Math.max(1, Math.round((Date.now() - this.thinkingSince) / 1000));
  }

  flush(): void {
    this.text = this.next.text;
    this.reasoning = this.next.reasoning;
  }

  complete(message: Message): void {
    this.endThought();
    this.message = message;
    this.text = this.next.text = "";
    this.early.clear();
  }
}

/** The person who looks on wrote it: what others write has their name. */
export function isOwn(message: Message | undefined): boolean {
  return message?.role === "user" && !message.author;
}

/** The parts of an answer's thoughts that were kept with it. */
export function reasoningOf(entry: Entry): string {
  const parts = entry.message?.parts?.filter((p) => p.type === "reasoning") ?? [];
  return parts.map((p) => p.text ?? "").join("\n\n") || entry.reasoning;
}
