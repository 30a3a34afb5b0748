// The conversation that is open, and the draft of the next message.
import { Conversation } from "./conversation.svelte";

class Page {
  conversation = $state.raw<Conversation>();
  /** The text in the composer; the meter asks what it would cost. */
  draft = $state("");

  show(session: string, seq: number): void {
    if (this.conversation?.id === session) return;
    this.conversation?.close();
    this.conversation = session ? new Conversation(session) : undefined;
    void this.conversation?.open(seq);
  }
}

export const page = new Page();
