// The exact prompt of the next model call, in parts, and what of it the last call was sent, too.
import { asError, ask, type ApiError, type Schema } from "../api/http";
import type { Message } from "../state/entry.svelte";
import { words } from "./words";

export type Prompt = Schema["PromptView"];
type PromptMessage = Schema["PromptMessage"];

/** One part of the prompt, in its order. */
export interface Part {
  section: PromptMessage["section"];
  title: string;
  text: string;
  tokens: number;
  placement: PromptMessage["placement"];
  message?: Message;
}

const pageSize = 200;
const mostPages = 10;

export class PromptText {
  prompt = $state.raw<Prompt>();
  parts = $state.raw<Part[]>([]);
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
    const { name, tokens = 0 } = prompt.system_parts[i] ?? {};
    const section = (name ?? "system") as Part["section"]; // no text is free or reserved
    return { section, title: words.sections[section], text, tokens, placement: "" };
  });
  const tools: Part[] = prompt.tools.length
    ? [{ section: "tools", title: words.sections.tools, text: toolText(prompt.tools), tokens: 0, placement: "" }]
    : [];
  const rest = prompt.messages.map((m): Part => ({
    section: m.section, title: words.roles[m.role], text: messageText(m), tokens: m.tokens, placement: m.placement,
    message: messages.get(m.message_id ?? ""),
  }));
  return [...tools, ...system, ...rest];
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

/** The first part that the last model call was not sent; undefined = it was sent all. The server counts the tools as one, also without any. */
export function firstChanged(prompt: Prompt, parts: Part[]): Part | undefined {
  return parts[Math.max(0, prompt.unchanged!.parts - (prompt.tools.length ? 0 : 1))];
}
