// Drafts, one per conversation, kept in this browser until they are sent.
import { store, stored } from "../state/ui.svelte";

export function readDraft(session: string): string {
  return stored(`bobbin.draft.${session}`, "");
}

/** False if the browser does not take it. */
export function keepDraft(session: string, text: string): boolean {
  return store(`bobbin.draft.${session}`, text);
}
