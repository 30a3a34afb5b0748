// The texts of what a conversation shows of its context before something is opened: the meter, the line beside the messages,
// the notice at their end and the card of the summary. The rest of them comes with the panel.
import { textOf } from "../language";
import { sentenceOf } from "../problems.svelte";
import { thread as own } from "../words";

const fallback = /^fallback: /; // the server's mark of summaries that were made without their model
const none = /^no summary was made: /;

export const words = {
  ...own,
  /** The server's reason in the page's words, where it has some. */
  reason: (text: string): string => {
    const said = text.replace(fallback, "").replace(none, "");
    const kind = /^the model failed \((\w+)\)$/.exec(said)?.[1];
    return sentenceOf(said.replace(/ \([\dhms.]+\)$/, ""), sentenceOf(`model_${kind}`, said)).replace(/\.$/, "");
  },
  /** What a context.warning says. */
  warning: ({ trigger, reason }: { trigger: string; reason: string }) => textOf(own.warnings, trigger, reason),
  /** What a summary's note says. */
  note: (note: string) => (fallback.test(note) ? own.madeWithoutModel(words.reason(note)) : note),
};
