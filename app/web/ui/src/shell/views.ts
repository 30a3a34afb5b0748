// The views of a conversation, and their keys: Alt 1, 2, 3.
import { pick } from "../language";
import { auth } from "../state/auth.svelte";
import { promptHref, router, runsHref, sessionHref, type View } from "../state/route.svelte";

export const words = pick({
  en: { views: "Views of the conversation", chat: "Chat", runs: "Runs", prompt: "Prompt", key: ["Alt 1 2 3", "Chat, Runs, Prompt"] },
  de: { views: "Ansichten der Unterhaltung", chat: "Chat", runs: "Läufe", prompt: "Prompt", key: ["Alt 1 2 3", "Chat, Läufe, Prompt"] },
});

/** The views, in the order of their keys. A token is an end user's, who sees the conversation alone. */
export function viewsOf(session: string): { name: View; label: string; href: string }[] {
  if (auth.secret.split(".").length === 3) return [];
  return [
    { name: "chat", label: words.chat, href: sessionHref(session) },
    { name: "runs", label: words.runs, href: runsHref(session) },
    { name: "prompt", label: words.prompt, href: promptHref(session) },
  ];
}

/** Opens the view that a key stands for; false if it stands for none. */
export function openView(e: KeyboardEvent, session: string): boolean {
  const digit = e.altKey && !e.ctrlKey && !e.metaKey && !e.shiftKey ? /^Digit([123])$/.exec(e.code)?.[1] : undefined;
  const view = digit && session ? viewsOf(session)[Number(digit) - 1] : undefined;
  if (view) router.go(view.href);
  return view !== undefined;
}
