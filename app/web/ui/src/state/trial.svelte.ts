// In the place of a new conversation while its first message is written, so that the meter can say what it would
// cost: a temporary session, which is in no list and gone after a day.
import { agents } from "./agents.svelte";
import { Conversation } from "./conversation.svelte";
import { sessions } from "./sessions.svelte";

class Trial {
  conversation = $state.raw<Conversation>();
  private choice = "";

  /** Begins one with the agent and the model that are chosen, unless there is one already. */
  async begin(): Promise<void> {
    const fields = { temporary: true, agent: agents.chosen, model: agents.chosenModel };
    const choice = JSON.stringify(fields);
    if (this.choice === choice) return;
    this.drop();
    this.choice = choice;
    try {
      const session = await sessions.create(fields);
      if (this.choice === choice) this.conversation = new Conversation(session.id);
    } catch {
      if (this.choice === choice) this.drop(); // the meter shows nothing
    }
  }

  drop(): void {
    this.choice = "";
    this.conversation = undefined;
  }
}

export const trial = new Trial();
