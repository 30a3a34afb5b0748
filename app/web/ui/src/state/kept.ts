// What a person has written and not sent is kept where their key is: in this tab, and on this device as well if the key
// is kept there or none is needed. A tab has its own texts, so that what one tab sends or writes costs another nothing.

const preferences = ["bobbin.theme", "bobbin.letters", "bobbin.language"];
/** A frame's visitor is the page's around it. */
export const framed = parent !== window;
let forgotten = false;

/** This tab's text, else the device's; a frame's visitor has the tab alone. */
export function kept(slot: string): string {
  try {
    const text = sessionStorage.getItem(slot) ?? (framed ? "" : localStorage.getItem(slot)) ?? "";
    if (text) sessionStorage.setItem(slot, text);
    return text;
  } catch {
    return "";
  }
}

/** False if the browser does not keep it. An empty text is removed. */
export function keep(slot: string, text: string): boolean {
  if (forgotten) return true;
  try {
    const before = sessionStorage.getItem(slot);
    if (text) sessionStorage.setItem(slot, text);
    else sessionStorage.removeItem(slot);
    if (text && onDevice()) localStorage.setItem(slot, text);
    else if (before !== null && localStorage.getItem(slot) === before) localStorage.removeItem(slot); // else it is another tab's
    return true;
  } catch {
    return false;
  }
}

export function keptSlots(prefix: string): string[] {
  try {
    const slots = [...Object.keys(sessionStorage), ...(framed ? [] : Object.keys(localStorage))];
    return [...new Set(slots)].filter((slot) => slot.startsWith(prefix));
  } catch {
    return [];
  }
}

/** Hears of what another tab has sent or taken back, if this one has the same. */
export function onRemoved(prefix: string, call: (slot: string) => void): void {
  addEventListener("storage", ({ key, newValue, oldValue }) => {
    if (!key?.startsWith(prefix) || newValue !== null || sessionStorage.getItem(key) !== oldValue) return;
    sessionStorage.removeItem(key);
    call(key);
  });
}

/** Forgets all but the page's looks. Nothing is kept from then on: the page has to be loaded anew. */
export function forgetPerson(): void {
  forgotten = true;
  try {
    for (const storage of [sessionStorage, localStorage]) {
      for (const slot of Object.keys(storage)) {
        if (slot.startsWith("bobbin.") && !preferences.includes(slot)) storage.removeItem(slot);
      }
    }
  } catch {
    // nothing was kept
  }
}

function onDevice(): boolean {
  return !framed && (localStorage.getItem("bobbin.key") !== null || sessionStorage.getItem("bobbin.key") === null);
}
