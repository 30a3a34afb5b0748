// In the place of a new conversation while its first message is written, so that the meter can say what it would
// cost: a temporary session, which is in no list and gone after a day.
import { ask, type Schema } from "../api/http";
import { timeZone } from "../text/format";
import { agents } from "./agents.svelte";
import { Conversation } from "./conversation.svelte";

class Trial {
  conversation = $state.raw<Conversation>();
  private choice = "";

  /** Begins one with the agent and the model that are chosen, unless there is one already. */
  async begin(): Promise<void> {
    const json = { temporary: true, source: "web", timezone: timeZone, agent: agents.chosen, model: agents.chosenModel };
    const choice = JSON.stringify(json);
    if (this.choice === choice) return;
    this.drop();
    this.choice = choice;
    try {
      const session = await ask<Schema["Session"]>("sessions", { method: "POST", json });
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
