// The language of the page: as chosen in its menu, else the browser's; in a frame, as the page around it says in the
// address. Changing it loads the page anew.

export type Language = "en" | "de";

export const languages: Record<Language, string> = { en: "English", de: "Deutsch" };

const slot = "bobbin.language";

function choose(): Language {
  let kept = parent === window ? "" : new URLSearchParams(location.search).get("lang");
  try {
    kept ||= localStorage.getItem(slot);
  } catch {
    // A forbidden storage costs the choice, not the page.
  }
  return (kept || navigator.language).startsWith("de") ? "de" : "en";
}

export const language = choose();

export const locale = { en: "en-US", de: "de-DE" }[language];

export function setLanguage(to: Language): void {
  try {
    localStorage.setItem(slot, to);
  } catch {
    return;
  }
  location.reload(); // drafts are kept with their conversations, the place is in the address
}

/** The text for a word of the server; one that the page does not know is shown as it is. */
export function textOf(table: Readonly<Record<string, string>>, word: string, other = word): string {
  return Object.hasOwn(table, word) ? table[word]! : other;
}

/** A room's texts in the page's language. A text that one language lacks does not compile. */
export function pick<T>(texts: { en: T; de: NoInfer<T> }): T {
  return texts[language];
}

/** The same for texts that the first load has: those of the other language stay where they are. */
export function load<T>(texts: { en: () => Promise<T>; de: () => Promise<NoInfer<T>> }): Promise<T> {
  return texts[language]();
}
