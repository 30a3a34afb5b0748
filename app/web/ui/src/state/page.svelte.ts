// The conversation that is open, and what a person writes in it.
import { agents } from "./agents.svelte";
import { Conversation } from "./conversation.svelte";
import { draftOf, type Draft } from "./drafts.svelte";
import { Outbox, outboxOf, sendAll, type Outgoing, type OutboxItem } from "./outbox.svelte";
import { router, sessionHref } from "./route.svelte";
import { sessions } from "./sessions.svelte";

class Page {
  conversation = $state.raw<Conversation>();
  /** Messages whose conversation is still to be made. */
  readonly fresh = new Outbox("", (first) => this.begin(first));

  /** What is written in the open conversation, or in a new one. */
  get writing(): Draft {
    return draftOf(this.conversation?.id ?? "");
  }

  /** The text in the composer; the meter asks what it would cost. */
  get draft(): string {
    return this.writing.text;
  }

  /** The files of that message that the server has. */
  get parts(): { blob_id: string }[] {
    return this.writing.files.flatMap((f) => (f.stored ? [{ blob_id: f.stored.id }] : []));
  }

  /** Shows what the address says, from now on. */
  follow(): void {
    const show = () => this.show(router.current.session, router.current.seq);
    router.onchange = show;
    sessions.ondeleted = (id) => id === this.conversation?.id && this.conversation.end();
    show();
    sendAll();
  }

  /** Sends to the open conversation, or to a new one. */
  send(message: Outgoing): void {
    if (this.conversation) return this.conversation.outbox.send(message);
    this.fresh.send({ ...message, begin: { agent: agents.chosen, model: agents.chosenModel } });
  }

  private show(session: string, seq: number): void {
    if ((this.conversation?.id ?? "") === session) return;
    this.conversation?.close();
    this.conversation = session ? new Conversation(session) : undefined;
    void this.conversation?.open(seq);
  }

  /** Makes the conversation of a first message, once, and opens it for whoever still waits for that. */
  private async begin(first: OutboxItem): Promise<Outbox> {
    const session = await sessions.create(first.message.begin ?? {}, first.id);
    const { view, session: shown } = router.current;
    if (view === "chat" && !shown) {
      const [unsent, draft] = [draftOf(""), draftOf(session.id)];
      draft.putBack(unsent.text, unsent.files);
      unsent.clear();
      this.conversation = new Conversation(session.id);
      this.conversation.session = session;
      router.go(sessionHref(session.id));
      void this.conversation.open();
    }
    return outboxOf(session.id);
  }
}

export const page = new Page();
