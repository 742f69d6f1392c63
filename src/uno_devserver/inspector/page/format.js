// Numbers and times for display. Pure functions.

/** Three digits: 0.4 ms, 3.2 ms, 123 ms, 1.23 s, 2 min 05 s. */
export function ms(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value < 10) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 10_000) return `${(value / 1000).toFixed(2)} s`;
  if (value < 60_000) return `${(value / 1000).toFixed(1)} s`;
  return `${Math.floor(value / 60_000)} min ${String(Math.floor((value % 60_000) / 1000)).padStart(2, "0")} s`;
}

export function seconds(value) {
  return value === null || value === undefined ? "–" : ms(value * 1000);
}

/** The duration of something that is still running: tenths, so that the last digit can be read. */
export function ticking(value) {
  return value < 60_000 ? `${(Math.max(0, value) / 1000).toFixed(1)} s` : ms(value);
}

export function duration(seconds_) {
  if (seconds_ < 60) return `${Math.round(seconds_)} s`;
  if (seconds_ < 3600) return `${Math.floor(seconds_ / 60)} min`;
  if (seconds_ < 86_400) return `${Math.floor(seconds_ / 3600)} h ${Math.floor((seconds_ % 3600) / 60)} min`;
  return `${Math.floor(seconds_ / 86_400)} d`;
}

const JUST_NOW_SECONDS = 3;

export function ago(date, now = Date.now()) {
  const passed = (now - date.getTime()) / 1000;
  return passed < JUST_NOW_SECONDS ? "just now" : `${duration(passed)} ago`;
}

/** A Date from seconds since 1970 or an ISO text; null for anything else. */
export function moment(value) {
  const date = new Date(typeof value === "number" ? value * 1000 : (value ?? NaN));
  return Number.isNaN(date.getTime()) ? null : date;
}

/** 14:03:07, or with milliseconds. Always 24 hours, so that lines are aligned. */
export function clock(date, thousandths = false) {
  const two = (number) => String(number).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return thousandths ? `${time}.${String(date.getMilliseconds()).padStart(3, "0")}` : time;
}

/** With the day, unless it is today. */
export function when(date, now = new Date()) {
  const day = date.toDateString() === now.toDateString() ? "" : `${date.toLocaleDateString()} `;
  return day + clock(date);
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(1)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}

export function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** ~/shop for a path below this home, unless the home is the root. */
export function shortened(path, home) {
  const folder = home.replace(/[\\/]+$/, "");
  const isBelow = folder !== "" && path.startsWith(folder) && /^([\\/]|$)/.test(path.slice(folder.length));
  return isBelow ? `~${path.slice(folder.length)}` : path;
}

/** The last part of a path of any system. */
export function basename(path) {
  return (
    path
      .replace(/[\\/]+$/, "")
      .split(/[\\/]/)
      .pop() || path
  );
}
