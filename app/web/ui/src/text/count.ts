// Numbers in the page's language.
import { locale } from "../language";

const number = new Intl.NumberFormat(locale);

export function count(n: number): string {
  return number.format(n);
}

/** The many differ from the one by an s in English only: German texts give both. */
export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
