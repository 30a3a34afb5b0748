// Numbers, times and sizes as the page writes them, in the person's zone and the page's language.
import { language, locale } from "../language";
import { words } from "../words";

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

export function durationOf(ms: number): string {
  if (ms < 1000) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 60_000) return `${decimal(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytesOf(size: number): string {
  if (size < 1000) return `${size} B`;
  if (size < 1_000_000) return `${decimal(size / 1000)} KB`;
  return `${decimal(size / 1_000_000)} MB`;
}
