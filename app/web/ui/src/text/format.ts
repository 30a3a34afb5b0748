// Numbers, times and sizes as the page writes them, in the person's zone.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const clockSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dayMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dayMonthYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const fullTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "medium" });
const monthName = new Intl.DateTimeFormat("en-US", { month: "long" });

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
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "Last 7 days";
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now).getFullYear() ? "" : ` ${date.getFullYear()}`;
  return monthName.format(date) + year;
}

export function durationOf(ms: number): string {
  if (ms < 1000) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytesOf(size: number): string {
  if (size < 1000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1000).toFixed(1)} KB`;
  return `${(size / 1_000_000).toFixed(1)} MB`;
}
