/** Where a worker logs: its connection, failed attempts, handlers that ignore their end. `console` fits. */
export interface Logger {
  /** What happens. */
  info(text: string): void;
  /** What somebody may want to look at. */
  warn(text: string): void;
  /** What went wrong. */
  error(text: string): void;
}

function plain(level: string): (text: string) => void {
  return (text) => process.stderr.write(`${new Date().toISOString()} ${level} jobline: ${text}\n`);
}

/** Logs to stderr, a line each. */
export const STDERR: Logger = { info: plain("INFO"), warn: plain("WARN"), error: plain("ERROR") };
