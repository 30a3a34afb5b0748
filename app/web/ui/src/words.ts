// The texts that the whole page shares; each room has its own beside them.
import { load } from "./language";

export { count, plural } from "./text/count";

/** thread: of context/threadWords.ts, in the same file. */
export const { words, thread } = await load({ en: () => import("./words.en"), de: () => import("./words.de") });
