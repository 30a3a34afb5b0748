// The exact prompt of the next model call, in parts, and how much of it is the same as before.
import { asError, ask, type ApiError, type Schema } from "../api/http";
import type { Message } from "../state/entry.svelte";
import { words } from "./words";

export type Prompt = Schema["PromptView"];
type PromptMessage = Schema["PromptMessage"];

/** One part of the prompt, in its order. */
export interface Part {
  /** Of the context report. */
  section: string;
  title: string;
  text: string;
  tokens: number;
  placement: string;
  message?: Message;
}

/** What the page knows of an earlier prompt: its parts' texts, in order, and when it had them. */
interface Known {
  texts: string[];
  at: number;
}

export interface Comparison {
  at: number;
  tokens: number;
  /** The first part that differs; undefined = none does. */
  from?: Part;
  /** All that was there before is there still, and in its place. */
  onlyMore: boolean;
}

const newest = new Map<string, Known>();
const before = new Map<string, Known>();
const pageSize = 200;
const mostPages = 10;

export class PromptText {
  prompt = $state.raw<Prompt>();
  parts = $state.raw<Part[]>([]);
  same = $state.raw<Comparison>();
  failure = $state.raw<ApiError>();
  private messages = new Map<string, Message>();
  private asked = 0;

  constructor(readonly session: string) {}

  async load(): Promise<void> {
    const number = ++this.asked;
    try {
      const prompt = await ask<Prompt>(`sessions/${this.session}/context/prompt`);
      await this.loadMessages(prompt.messages.flatMap((m) => m.message_id ?? []));
      if (number !== this.asked) return;
      const parts = partsOf(prompt, this.messages);
      this.same = compare(this.session, parts);
      this.prompt = prompt;
      this.parts = parts;
      this.failure = undefined;
    } catch (e) {
      if (number === this.asked) this.failure = asError(e);
    }
  }

  /** The messages of the log that the prompt has: their numbers, authors and whole sizes. */
  private async loadMessages(ids: string[]): Promise<void> {
    const kept = new Map<string, Message>();
    let missing = ids.length;
    let first: number | undefined;
    for (let n = 0; missing > 0 && n < mostPages; n++) {
      const query = { order: "desc", limit: pageSize, before: first };
      const page = await ask<Schema["MessagePage"]>(`sessions/${this.session}/messages`, { query });
      for (const m of page.items) kept.set(m.id, m);
      missing = ids.filter((id) => !kept.has(id)).length;
      first = page.items.at(-1)?.seq;
      if (page.items.length < pageSize || !first) break;
    }
    this.messages = kept;
  }
}

/** The whole text, for a file or the clipboard. */
export function textOf(parts: Part[]): string {
  return parts.map((p) => `── ${p.title}${p.message ? ` #${p.message.seq}` : ""} ──\n${p.text}`).join("\n\n");
}

function partsOf(prompt: Prompt, messages: Map<string, Message>): Part[] {
  const system = prompt.system.map((text, i): Part => {
    const { name: section = "system", tokens = 0 } = prompt.system_parts[i] ?? {};
    return { section, title: words.sections[section] ?? section, text, tokens, placement: "" };
  });
  const tools: Part[] = prompt.tools.length
    ? [{ section: "tools", title: words.sections.tools!, text: toolText(prompt.tools), tokens: 0, placement: "" }]
    : [];
  const rest = prompt.messages.map((m): Part => ({
    section: m.section, title: words.roles[m.role] ?? m.role, text: messageText(m), tokens: m.tokens, placement: m.placement,
    message: messages.get(m.message_id ?? ""),
  }));
  return [...system.slice(0, 1), ...tools, ...system.slice(1), ...rest];
}

function toolText(tools: Schema["PromptTool"][]): string {
  return tools.map((t) => `${t.name}\n${t.description}\n${JSON.stringify(t.parameters, null, 2)}`).join("\n\n");
}

function messageText(m: PromptMessage): string {
  const lines = [m.content, ...(m.tool_calls ?? []).map((c) => `→ ${c.name} ${c.arguments}`)];
  for (const media of m.media ?? []) lines.push(words.file(media.name || media.media_type || media.type));
  if (m.added_tools?.length) lines.push(words.addedTools(m.added_tools.map((t) => t.name).join(", ")));
  if (m.removed_tools?.length) lines.push(words.removedTools(m.removed_tools.join(", ")));
  return lines.filter(Boolean).join("\n");
}

/** How many parts from the beginning are the same as in the prompt that this page had before this one. */
function compare(session: string, parts: Part[]): Comparison | undefined {
  const texts = parts.map((p) => `${p.section} ${p.title} ${p.text}`);
  const last = newest.get(session);
  if (last && !(last.texts.length === texts.length && last.texts.every((t, i) => t === texts[i]))) before.set(session, last);
  newest.set(session, { texts, at: Date.now() });
  const earlier = before.get(session);
  if (!earlier) return undefined;
  let n = 0;
  while (n < texts.length && texts[n] === earlier.texts[n]) n++;
  return { at: earlier.at, tokens: parts.slice(0, n).reduce((sum, p) => sum + p.tokens, 0), from: parts[n], onlyMore: n === earlier.texts.length };
}
