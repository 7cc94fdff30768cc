import { NoToken } from "../errors.js";
import type { TokenAnswer } from "./messages.js";

/** The token of a worker's function, which is in the thread of the handlers. */
export class AskedToken {
  private asked = 0;
  private settle: ((answer: TokenAnswer) => void) | undefined;

  /** Makes it; `tell` has the other thread call the function, and answer with this number. */
  constructor(private readonly tell: (number: number) => void) {}

  /** Asks for the token of now. Throws NoToken. One that asked before is not answered any more. */
  async ask(): Promise<string> {
    this.asked += 1;
    const answer = await new Promise<TokenAnswer>((resolve) => {
      this.settle = resolve;
      this.tell(this.asked);
    });
    if (answer.token === undefined) throw new NoToken(answer.error ?? "");
    return answer.token;
  }

  /** Takes the answer; a late one, to an earlier question, is dropped. */
  take(answer: TokenAnswer): void {
    if (answer.number === this.asked) this.settle?.(answer);
  }
}
