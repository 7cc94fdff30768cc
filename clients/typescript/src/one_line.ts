/** Characters that would steer a terminal, or make text look as what it is not; but joiners of emoji. */
const STEERING = /(?!\u200d)[\p{Cc}\p{Cf}\p{Cs}]/gu;

/** Returns a text of a server as one line for logs and terminals: what would steer these is made visible. */
export function oneLine(text: string): string {
  return text
    .replace(/[\s\u0085]+/g, " ")
    .trim()
    .replace(STEERING, "\ufffd");
}
