/** How lessor speaks to people: on stderr, in one line, with names that cannot play tricks on a terminal. */

/** One line on stderr. stdout belongs to the command. */
export function say(text: string): void {
  process.stderr.write(`lessor: ${text}\n`);
}

/** A name as it is, or quoted when it holds anything that a terminal would act on or that would be misread. */
export function printable(name: string): string {
  const isPlain = name !== '' && name === name.trim() && !/[\p{C}\p{Zl}\p{Zp}"\\]/u.test(name);
  if (isPlain) return name;
  return JSON.stringify(name).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escapeCharacter);
}

function escapeCharacter(character: string): string {
  return [...Array(character.length).keys()]
    .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
    .join('');
}

/** `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`. */
export function duration(seconds: number): string {
  if (seconds < 10) return `${(Math.round(seconds * 10) / 10).toString()} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return pair(whole, 60, 'min', 's');
  if (whole < 86_400) return pair(Math.round(whole / 60), 60, 'h', 'min');
  return pair(Math.round(whole / 3600), 24, 'd', 'h');
}

function pair(amount: number, size: number, large: string, small: string): string {
  const rest = amount % size;
  return `${Math.floor(amount / size)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`;
}

/** A point in time, in seconds since 1970, as UTC. */
export function moment(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? `${seconds}` : `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
