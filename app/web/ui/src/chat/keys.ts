// Keys inside the thread. It is one stop for Tab, on the message that had the focus last: arrows go between messages,
// Enter into one, where Tab stays, and Esc out of it; letters act on the focused one.
import { places } from "../context/places.svelte";
import { copy } from "../parts/copy";
import type { Conversation } from "../state/conversation.svelte";
import { draftOf } from "../state/drafts.svelte";
import { isOwn } from "../state/entry.svelte";
import { ui } from "../state/ui.svelte";
import { words } from "../words";
import { regenerate, selectBranch, setPinned } from "./actions";
import type { Turn } from "./turns";

const controls = ":is(a[href], button, input, textarea, select, summary, [tabindex='0']):not([tabindex='-1'], :disabled)";

export class ThreadKeys {
  private last: Element | undefined;
  /** Tab was pressed last: the focus that comes is not the pointer's. */
  private tab = false;

  constructor(
    private readonly thread: HTMLElement,
    private readonly conversation: Conversation,
    private readonly turns: () => Turn[],
  ) {}

  onpointerdown(): void {
    this.tab = false;
  }

  /** Whoever comes by Tab is at one message, not at what is in it. */
  onfocusin(e: FocusEvent): void {
    const from = e.relatedTarget as Element | null;
    const at = this.stops().find((s) => s.contains(e.target as Element));
    if (this.tab && !this.thread.contains(from)) this.focus(this.stops().find((s) => s === this.last) ?? this.stops().at(-1));
    else if (at) this.last = at;
  }

  onkeydown(e: KeyboardEvent): void {
    this.tab = e.key === "Tab";
    if (ui.dialog || e.ctrlKey || e.metaKey) return;
    const focused = document.activeElement as HTMLElement;
    const arrow = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    if (focused.closest("dialog") || !(this.thread.contains(focused) || (arrow && e.altKey))) return;
    const at = this.stops().find((s) => s.contains(focused));
    if (arrow && (e.altKey || at === focused)) {
      e.preventDefault();
      return this.step(at, arrow);
    }
    if (e.altKey) return;
    if (e.key === "Tab") return this.leave(e, at, focused);
    if (e.key === "Escape" && at && at !== focused && focused.matches(":focus-visible:not(input, textarea)")) {
      e.preventDefault();
      return at.focus();
    }
    if (at !== focused) return;
    if (e.key === "Enter") {
      e.preventDefault();
      return at.querySelector<HTMLElement>(controls)?.focus();
    }
    const turn = this.turns().find((t) => t.key === focused.dataset.turn);
    if (turn && ui.letters && act(e.key.toLowerCase(), turn, this.conversation, focused)) e.preventDefault();
  }

  /** Messages, and the cards between them. */
  private stops(): HTMLElement[] {
    return [...this.thread.querySelectorAll<HTMLElement>(`.lane > :is(article, :has(${controls}))`)];
  }

  private step(at: HTMLElement | undefined, by: number): void {
    const all = this.stops();
    const to = at ? Math.min(Math.max(all.indexOf(at) + by, 0), all.length - 1) : all.length - 1;
    this.focus(all[to]);
    all[to]?.scrollIntoView({ block: "nearest" });
  }

  private focus(stop: HTMLElement | undefined): void {
    if (!stop) return;
    stop.tabIndex = -1;
    stop.focus();
  }

  /** Inside of a message Tab goes on to what is in it; else out of the thread, from its first or its last element. */
  private leave(e: KeyboardEvent, at: HTMLElement | undefined, focused: HTMLElement): void {
    const inside = at && at !== focused ? [...at.querySelectorAll<HTMLElement>(controls)] : [];
    if (inside[inside.indexOf(focused) + (e.shiftKey ? -1 : 1)]) return;
    const edge = e.shiftKey ? this.thread : this.thread.querySelector<HTMLElement>(".end-of-thread");
    edge?.focus({ preventScroll: true }); // the browser goes on from there
  }
}

function act(key: string, turn: Turn, conversation: Conversation, element: HTMLElement): boolean {
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
      if (idle && isOwn(message)) draftOf(conversation.id).beginEdit(message.id, message.content);
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
