// Drafts, one per conversation, kept in this browser until they are sent.
import { store, stored } from "../state/ui.svelte";

const longest = 100_000;

export function readDraft(session: string): string {
  return stored(`bobbin.draft.${session}`, "");
}

export function keepDraft(session: string, text: string): void {
  store(`bobbin.draft.${session}`, text.slice(0, longest));
}
