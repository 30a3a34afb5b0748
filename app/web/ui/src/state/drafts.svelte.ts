// What a person is writing: the next message of each conversation with its files, and messages that are being edited.
// All of it stays while the page shows something else, and is kept for a reload.
import { untrack } from "svelte";
import { Attachment, type Stored } from "./attachments.svelte";
import { keep, kept, onRemoved } from "./kept";

const prefix = "bobbin.draft.";
const quiet = 300; // ms without a key before it is kept

interface Kept {
  text: string;
  files: Stored[];
  /** By message: its text as it is being edited. */
  edits: Record<string, string>;
}

export class Draft {
  files = $state.raw<Attachment[]>([]);
  /** False if the browser does not keep it. */
  kept = $state(true);
  /** The message whose edit begins now: its field takes the focus, once. */
  begun = "";
  private written = $state("");
  private edits = $state.raw<Record<string, string>>({});
  private timer = 0;

  constructor(private readonly session: string) {
    this.load();
  }

  get text(): string {
    return this.written;
  }

  set text(text: string) {
    this.written = text;
    this.keepSoon();
  }

  get empty(): boolean {
    return !this.text.trim() && this.files.length === 0;
  }

  attach(files: Iterable<File>): void {
    this.files = [...this.files, ...[...files].map((f) => new Attachment(f, () => this.keepSoon()))];
  }

  detach(file: Attachment): void {
    file.again.stop();
    this.files = this.files.filter((f) => f !== file);
    this.keepSoon();
  }

  /** Puts a message back that was not sent, before what is there. */
  putBack(text: string, files: (Stored | Attachment)[]): void {
    const back = files.map((f) => (f instanceof Attachment ? f : new Attachment(f)));
    for (const file of back) file.onstored = () => this.keepSoon();
    this.files = [...back, ...this.files];
    this.text = [text, this.text].filter(Boolean).join("\n\n");
  }

  /** It was sent: another tab that has the same takes it out, too, as it does not what is only erased here. */
  clear(): void {
    this.save();
    this.files = [];
    this.written = "";
    if (Object.keys(this.edits).length) this.keepSoon();
    else keep(this.slot, "");
  }

  /** The text of a message that is being edited; undefined if it is not. */
  edit(message: string): string | undefined {
    return this.edits[message];
  }

  beginEdit(message: string, text: string): void {
    this.begun = message;
    this.setEdit(message, this.edits[message] ?? text);
  }

  /** Without a text the message is not edited any more. */
  setEdit(message: string, text?: string): void {
    const { [message]: _, ...others } = this.edits;
    this.edits = text === undefined ? others : { ...others, [message]: text };
    this.keepSoon();
  }

  /** Takes what is kept, unless something is being typed. */
  load(): void {
    if (this.timer) return;
    const { text, files, edits } = read(this.slot);
    this.written = text;
    this.files = files.map((f) => new Attachment(f));
    this.edits = edits;
  }

  /** Writes down what is not yet. */
  save(): void {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    const files = this.files.flatMap((f) => f.stored ?? []);
    const { text, edits } = this;
    this.kept = keep(this.slot, JSON.stringify({ text, files, edits } satisfies Kept));
  }

  get slot(): string {
    return prefix + this.session;
  }

  private keepSoon(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.save(), quiet);
  }
}

function read(slot: string): Kept {
  const text = kept(slot);
  try {
    return JSON.parse(text) as Kept;
  } catch {
    return { text, files: [], edits: {} }; // nothing, or of a page that kept the text alone
  }
}

const drafts = new Map<string, Draft>();

/** The draft of a conversation, "" = a new one. */
export function draftOf(session: string): Draft {
  let draft = drafts.get(session);
  if (!draft) drafts.set(session, (draft = untrack(() => new Draft(session))));
  return draft;
}

onRemoved(prefix, (slot) => drafts.forEach((d) => d.slot === slot && d.load()));

// The page may be gone before the pause is over.
addEventListener("pagehide", () => drafts.forEach((d) => d.save()));
