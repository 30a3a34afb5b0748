// The texts that the whole page shares; each room has its own beside them.
import { load } from "./language";

export { count, plural } from "./text/count";

/** What the empty page proposes to ask the demo model, which knows English alone. */
export const demoQuestions: [string, string, string] = [
  "My name is Ada. What is 17 × 23?",
  "Tell me, step by step, what happens to a long conversation",
  "What is my name, and how do you know?",
];

/** thread: of context/threadWords.ts, in the same file. */
export const { words, thread } = await load({ en: () => import("./words.en"), de: () => import("./words.de") });
