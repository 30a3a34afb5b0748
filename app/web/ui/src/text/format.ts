// Numbers, times and sizes as the page writes them, in the person's zone and the page's language.
import { language, locale } from "../language";
import { count, words } from "../words";

// The times of the English page are on the 24-hour clock, and days stand before months.
const times = { en: "en-GB", de: "de-DE" }[language];

const clock = new Intl.DateTimeFormat(times, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const clockSeconds = new Intl.DateTimeFormat(times, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dayMonth = new Intl.DateTimeFormat(times, { day: "numeric", month: "short" });
const dayMonthYear = new Intl.DateTimeFormat(times, { day: "numeric", month: "short", year: "numeric" });
const fullTime = new Intl.DateTimeFormat(times, { dateStyle: "full", timeStyle: "medium" });
const monthName = new Intl.DateTimeFormat(locale, { month: "long" });

export const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function timeOf(at: string, seconds = false): string {
  return (seconds ? clockSeconds : clock).format(new Date(at));
}

export function fullTimeOf(at: string): string {
  return fullTime.format(new Date(at));
}

export function dateOf(at: string): string {
  const date = new Date(at);
  return (date.getFullYear() === new Date().getFullYear() ? dayMonth : dayMonthYear).format(date);
}

/** Days between two moments in the person's zone: 0 = the same day. */
export function daysAgo(at: string, now: number): number {
  const midnight = (d: Date) => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime();
  return Math.round((midnight(new Date(now)) - midnight(new Date(at))) / 86_400_000);
}

/** The heading below which a conversation stands in the list. */
export function dateGroup(at: string, now: number): string {
  const days = daysAgo(at, now);
  if (days <= 0) return words.dates.today;
  if (days === 1) return words.dates.yesterday;
  if (days <= 7) return words.dates.week;
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now).getFullYear() ? "" : ` ${date.getFullYear()}`;
  return monthName.format(date) + year;
}

export function decimal(n: number, digits = 1): string {
  return n.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const compact = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const utcDay = new Intl.DateTimeFormat(times, { day: "numeric", month: "short", timeZone: "UTC" });

/** A part of a whole, in percent. */
export function share(part: number, whole: number, digits = 0): string {
  return `${(whole ? (100 * part) / whole : 0).toLocaleString(locale, { maximumFractionDigits: digits })} %`;
}

/** A large number in few characters. */
export const shortCount = (n: number) => (n < 10_000 ? count(n) : compact.format(n)); // German has no short form for thousands

/** Cost in millionths of a dollar. What is less than the last digit, or at least so much, is said to be. */
export function dollars(micro: number, digits = 2, atLeast = false): string {
  const money = (usd: number) => usd.toLocaleString(locale, { style: "currency", currency: "USD", minimumFractionDigits: digits, maximumFractionDigits: digits });
  const least = 10 ** -digits;
  if (atLeast) return `${micro / 1e6 < least ? ">" : "≥"} ${money(Math.floor(micro / 10 ** (6 - digits)) / 10 ** digits)}`;
  return micro > 0 && micro / 1e6 < least ? `< ${money(least)}` : money(micro / 1e6);
}

/** A day of the books, which are in UTC. */
export const dayOf = (date: string) => utcDay.format(new Date(`${date}T00:00Z`));

export function durationOf(ms: number): string {
  if (ms < 999.5) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 59_950) return `${decimal(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000); // first, so that none is the 60th
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytesOf(size: number): string {
  if (size < 1000) return `${size} B`;
  if (size < 1_000_000) return `${decimal(size / 1000)} KB`;
  return `${decimal(size / 1_000_000)} MB`;
}
