// The agents and the models that a conversation may choose.
import { asError, ask, type ApiError, type Schema } from "../api/http";
import { Retry } from "./retry.svelte";
import { store, stored } from "./ui.svelte";

export type Agent = Schema["AgentDetail"];

export type Model = Schema["ModelChoice"];

class Agents {
  items = $state.raw<Agent[]>([]);
  /** The agent of the next new conversation; empty = the server's default, which is the first one. */
  chosen = $state(stored("bobbin.agent", ""));
  /** The model of the next new conversation; empty = the agent's. */
  chosenModel = $state("");

  /** Why there are none to choose, if it does not pass by itself. */
  failure = $state.raw<ApiError>();

  readonly again = new Retry(() => this.load());

  async load(): Promise<void> {
    try {
      const page = await ask<Schema["AgentDetailPage"]>("agents");
      this.items = page.items;
      if (!this.items.some((a) => a.name === this.chosen)) this.chosen = "";
      this.failure = undefined;
      this.again.stop();
    } catch (e) {
      const error = asError(e);
      this.again.after(error); // the list says why nothing comes
      this.failure = this.again.at || error.status === 401 ? undefined : error;
    }
  }

  choose(name: string): void {
    this.chosen = name;
    this.chosenModel = "";
    store("bobbin.agent", name);
  }

  find(name: string): Agent | undefined {
    return this.items.find((a) => a.name === name);
  }

  models(agent: string): Model[] {
    return this.find(agent)?.models ?? [];
  }

  /** The name of the model that answers if nobody chooses one; empty while it is unknown. */
  defaultModel(agent: string): string {
    return this.models(agent).find((m) => m.default)?.name ?? this.find(agent)?.model ?? "";
  }
}

export const agents = new Agents();
