// Keys inside the thread: one stop for Tab, Alt with arrows between messages, letters on the focused one.
import { places } from "../context/places.svelte";
import { copy } from "../parts/copy";
import type { Conversation } from "../state/conversation.svelte";
import { ui } from "../state/ui.svelte";
import { words } from "../words";
import { regenerate, selectBranch, setPinned } from "./actions";
import type { Turn } from "./turns";

export function threadKeys(
  e: KeyboardEvent,
  thread: HTMLElement | undefined,
  conversation: Conversation,
  turns: Turn[],
  onedit: (id: string) => void,
): void {
  if (!thread || ui.dialog) return;
  if (e.altKey && !e.ctrlKey && !e.metaKey && (e.key === "ArrowUp" || e.key === "ArrowDown")) {
    e.preventDefault();
    step(thread, e.key === "ArrowUp" ? -1 : 1);
    return;
  }
  const focused = document.activeElement as HTMLElement | null;
  const turn = turns.find((t) => t.key === focused?.dataset.turn);
  if (!turn || e.altKey || e.ctrlKey || e.metaKey || !ui.letters) return;
  if (act(e.key.toLowerCase(), turn, conversation, focused!, onedit)) e.preventDefault();
}

function step(thread: HTMLElement, by: number): void {
  const all = [...thread.querySelectorAll<HTMLElement>("[data-turn]")];
  const at = all.findIndex((el) => el.contains(document.activeElement));
  const to = at < 0 ? all.length - 1 : Math.min(Math.max(at + by, 0), all.length - 1);
  all[to]?.focus();
  all[to]?.scrollIntoView({ block: "nearest" });
}

function act(key: string, turn: Turn, conversation: Conversation, element: HTMLElement, onedit: (id: string) => void): boolean {
  const message = turn.entries.findLast((e) => e.message)?.message;
  if (!message) return false;
  const branch = turn.entries.find((e) => e.message?.branch)?.message?.branch;
  const idle = !conversation.activeRun;
  switch (key) {
    case "c":
      void copy(turn.entries.map((e) => e.content).join("\n\n")).then((done) => ui.announce(done ? words.copied : words.notCopied));
      return true;
    case "r":
      if (idle) void regenerate(conversation, message);
      return true;
    case "e":
      if (idle && turn.kind === "user") onedit(message.id);
      return true;
    case "p":
      void setPinned(conversation, message, !message.pinned);
      return true;
    case "w":
      places.explain(conversation.id, message.id, element);
      return true;
    case "arrowleft":
      if (idle && branch?.previous) void selectBranch(conversation, branch.previous);
      return Boolean(branch);
    case "arrowright":
      if (idle && branch?.next) void selectBranch(conversation, branch.next);
      return Boolean(branch);
  }
  return false;
}
