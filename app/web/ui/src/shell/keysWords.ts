// The list of keys.
import { pick } from "../language";

export const words = pick({
  en: {
    keys: [
      ["Enter", "Send"],
      ["Shift Enter", "New line"],
      ["Esc", "Close the topmost thing, else stop the answer"],
      ["↑ in an empty field", "Edit your last message"],
      ["Ctrl/⌘ K", "Search"],
      ["Ctrl/⌘ Shift O", "New conversation"],
      ["Ctrl/⌘ .", "Context panel"],
      ["Alt ↑ ↓", "Message before, after; on a message without Alt"],
      ["Enter, Esc", "Into the message, out of it"],
      ["C", "Copy the message"],
      ["R", "New answer"],
      ["E", "Edit"],
      ["P", "Pin"],
      ["W", "Where is this message?"],
      ["← →", "Branch before, after"],
      ["F2", "Rename the conversation"],
      ["?", "This list"],
    ] as const,
  },
  de: {
    keys: [
      ["Enter", "Senden"],
      ["Umschalt Enter", "Neue Zeile"],
      ["Esc", "Das Oberste schließen, sonst die Antwort anhalten"],
      ["↑ im leeren Feld", "Die letzte eigene Nachricht bearbeiten"],
      ["Strg/⌘ K", "Suchen"],
      ["Strg/⌘ Umschalt O", "Neue Unterhaltung"],
      ["Strg/⌘ .", "Kontext"],
      ["Alt ↑ ↓", "Vorige, nächste Nachricht; auf einer Nachricht ohne Alt"],
      ["Enter, Esc", "In die Nachricht hinein, aus ihr heraus"],
      ["C", "Nachricht kopieren"],
      ["R", "Neue Antwort"],
      ["E", "Bearbeiten"],
      ["P", "Anheften"],
      ["W", "Wo ist diese Nachricht?"],
      ["← →", "Voriger, nächster Zweig"],
      ["F2", "Unterhaltung umbenennen"],
      ["?", "Diese Liste"],
    ] as const,
  },
});
