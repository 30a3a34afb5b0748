// What a person does with a message.
import { ask } from "../api/http";
import { attempt } from "../state/attempt.svelte";
import type { Conversation } from "../state/conversation.svelte";
import type { Message } from "../state/entry.svelte";
import { router, sessionHref } from "../state/route.svelte";
import { sessions, type Session } from "../state/sessions.svelte";

const soon = { Prefer: "respond-async" };

export function regenerate(conversation: Conversation, message: Message): Promise<boolean> {
  const path = `sessions/${conversation.id}/messages/${message.id}/regenerate`;
  return attempt(ask(path, { method: "POST", json: { source: "web" }, headers: soon }));
}

/** A new version on a branch of its own, and its answer. */
export function resend(conversation: Conversation, message: Message, content: string, id: string): Promise<boolean> {
  const path = `sessions/${conversation.id}/messages/${message.id}`;
  const json = { content, source: "web", client_message_id: id };
  return attempt(ask(path, { method: "PATCH", json, headers: soon }));
}

export function selectBranch(conversation: Conversation, id: string): Promise<boolean> {
  return attempt(ask(`sessions/${conversation.id}/messages/${id}/select`, { method: "POST", json: {} }));
}

export function setPinned(conversation: Conversation, message: Message, pinned: boolean): Promise<boolean> {
  const path = `sessions/${conversation.id}/messages/${message.id}/pin`;
  return attempt(ask(path, { method: "PUT", json: { pinned } }));
}

export function fork(conversation: Conversation, message?: Message): Promise<boolean> {
  const json = message ? { message_id: message.id } : {};
  const work = ask<Session>(`sessions/${conversation.id}/fork`, { method: "POST", json }).then((s) => {
    sessions.update(s);
    router.go(sessionHref(s.id));
  });
  return attempt(work);
}
