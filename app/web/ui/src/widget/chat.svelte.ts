// The visitor's conversation: made with the first message, found again in the same tab.
import { auth, personOf } from "../state/auth.svelte";
import { Conversation } from "../state/conversation.svelte";
import { draftOf } from "../state/drafts.svelte";
import { keep, kept } from "../state/kept";
import { Outbox, outboxOf, type OutboxItem } from "../state/outbox.svelte";
import { sessions } from "../state/sessions.svelte";
import { ui } from "../state/ui.svelte";
import { host } from "./host.svelte";

export class Chat {
  conversation = $state.raw<Conversation>();
  readonly draft;
  /** Messages whose conversation is still to be made. */
  private readonly fresh;
  private readonly slot;

  /** Another visitor of the same tab finds nothing of it: all is kept by who they are. */
  constructor() {
    const person = personOf(auth.secret);
    const visitor = person === auth.secret ? "" : person;
    this.slot = `bobbin.widget.${visitor}`;
    this.draft = draftOf(visitor);
    this.fresh = new Outbox(visitor, (first) => this.make(first));
    const id = kept(this.slot);
    if (id) this.open(id);
  }

  get outbox(): Outbox {
    return this.conversation?.outbox ?? this.fresh;
  }

  /** Leaves the conversation; the next message begins another. */
  begin(): void {
    this.conversation?.close();
    this.conversation = undefined;
    keep(this.slot, "");
  }

  send(content: string): void {
    ui.failure = undefined;
    this.outbox.send({ content, files: [], begin: { agent: host.look?.agent || undefined } });
  }

  /** Goes on where a token was refused, or a request failed. */
  async again(): Promise<void> {
    await this.conversation?.open();
    await this.outbox.sendWaiting();
  }

  private async make(first: OutboxItem): Promise<Outbox> {
    const session = await sessions.create(first.message.begin ?? {}, first.id);
    keep(this.slot, session.id);
    this.open(session.id);
    return outboxOf(session.id);
  }

  private open(id: string): void {
    this.conversation = new Conversation(id);
    void this.conversation.open();
  }
}
