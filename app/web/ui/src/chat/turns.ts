// How the thread groups messages: what a person wrote, and all that an agent did to answer it.
import type { Entry, Message } from "../state/entry.svelte";
import { daysAgo } from "../text/format";

export type ToolUse = { call: NonNullable<Message["tool_calls"]>[number]; result?: Message };

/** One part of an answer: its thoughts and text, or the tools that were used between two texts. */
export type Piece = { key: string; seq: number } & ({ kind: "text"; entry: Entry } | { kind: "tools"; uses: ToolUse[]; entry: Entry });

export interface Turn {
  key: string;
  kind: "user" | "agent" | "system";
  entries: Entry[];
  /** A new day begins here. */
  newDay: boolean;
}

export function turnsOf(entries: Entry[]): Turn[] {
  const turns: Turn[] = [];
  let day = "";
  for (const entry of entries) {
    const kind = entry.role === "user" ? "user" : entry.role === "system" ? "system" : "agent";
    const last = turns.at(-1);
    const at = entry.message?.created_at ?? day;
    if (kind === "agent" && last?.kind === "agent" && sameAnswer(last.entries.at(-1)!, entry)) {
      last.entries.push(entry);
    } else {
      turns.push({ key: entry.id, kind, entries: [entry], newDay: Boolean(day && at) && daysAgo(day, Date.parse(at)) > 0 });
    }
    day = at;
  }
  return turns;
}

function sameAnswer(a: Entry, b: Entry): boolean {
  return a.runId && b.runId ? a.runId === b.runId : b.role === "tool" || a.role === "tool";
}

export function piecesOf(turn: Turn): Piece[] {
  const results = new Map<string, Message>();
  for (const e of turn.entries) if (e.message?.tool_call_id) results.set(e.message.tool_call_id, e.message);
  const shown = new Set<string>();
  const pieces: Piece[] = [];
  for (const entry of turn.entries) {
    if (entry.role === "tool") {
      const m = entry.message!;
      if (shown.has(m.tool_call_id ?? "")) continue;
      // A result without its call: the call is on a page that is not loaded.
      addTools(pieces, entry, [{ call: { id: m.tool_call_id ?? "", name: m.tool_name ?? "", arguments: "" }, result: m }]);
      continue;
    }
    const calls = entry.message?.tool_calls ?? [];
    const hasText = entry.content !== "" || entry.reasoning !== "" || entry.message?.parts?.length || entry.message?.deleted_at;
    if (hasText || calls.length === 0) pieces.push({ key: entry.id, seq: entry.seq, kind: "text", entry });
    for (const call of calls) shown.add(call.id);
    if (calls.length) addTools(pieces, entry, calls.map((call) => ({ call, result: results.get(call.id) })));
  }
  return pieces;
}

function addTools(pieces: Piece[], entry: Entry, uses: ToolUse[]): void {
  const last = pieces.at(-1);
  if (last?.kind === "tools") last.uses.push(...uses);
  else pieces.push({ key: `${entry.id}/tools`, seq: entry.seq, kind: "tools", uses: [...uses], entry });
}

/** The argument that says most: the only one, or the first text. */
export function tellingArgument(json: string): string {
  try {
    const args = JSON.parse(json) as Record<string, unknown>;
    const values = Object.values(args);
    const telling = values.find((v) => typeof v === "string") ?? values[0];
    return telling === undefined ? "" : typeof telling === "string" ? telling : JSON.stringify(telling);
  } catch {
    return json;
  }
}

/** Arguments as rows; undefined if they are not an object. */
export function argumentRows(json: string): [string, string][] | undefined {
  try {
    const args = JSON.parse(json) as unknown;
    if (typeof args !== "object" || args === null || Array.isArray(args)) return undefined;
    return Object.entries(args).map(([k, v]) => [k, typeof v === "string" ? v : JSON.stringify(v)]);
  } catch {
    return undefined;
  }
}
