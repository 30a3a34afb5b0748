// The conversation that is open, and the draft of the next message.
import { ApiError, asError } from "../api/http";
import { agents } from "./agents.svelte";
import { Conversation } from "./conversation.svelte";
import type { Draft } from "./outbox.svelte";
import { router, sessionHref } from "./route.svelte";
import { sessions } from "./sessions.svelte";

class Page {
  conversation = $state.raw<Conversation>();
  /** The text in the composer; the meter asks what it would cost. */
  draft = $state("");
  /** The files of that message that the server has. */
  parts = $state.raw<{ blob_id: string }[]>([]);
  /** Why a new conversation could not be made. */
  failure = $state.raw<ApiError>();

  show(session: string, seq: number): void {
    if ((this.conversation?.id ?? "") === session) return;
    this.conversation?.close();
    this.conversation = session ? new Conversation(session) : undefined;
    void this.conversation?.open(seq);
  }

  /** Sends to the open conversation, or to a new one. False = nothing was taken, the draft stays. */
  async send(draft: Draft): Promise<boolean> {
    if (this.conversation) {
      this.conversation.outbox.send(draft);
      return true;
    }
    this.failure = undefined;
    try {
      const session = await sessions.create({
        ...(agents.chosen ? { agent: agents.chosen } : {}),
        ...(agents.chosenModel ? { model: agents.chosenModel } : {}),
      });
      const conversation = new Conversation(session.id);
      conversation.session = session;
      conversation.outbox.send(draft);
      this.conversation = conversation;
      router.go(sessionHref(session.id));
      void conversation.open();
      return true;
    } catch (e) {
      this.failure = asError(e);
      return false;
    }
  }
}

export const page = new Page();
