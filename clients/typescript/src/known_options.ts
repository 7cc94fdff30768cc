import { InvalidArgument } from "./errors.js";
import { refuseNoObject } from "./given.js";

/** Throws InvalidArgument for an option that is not known: a misspelt one would be ignored in silence. */
export function refuseUnless(options: object, isKnown: (name: string) => boolean): void {
  refuseNoObject("options", options);
  for (const name of Object.keys(options)) {
    if (!isKnown(name)) {
      throw new InvalidArgument(`${name}: there is no such option`, { fields: { [name]: "is unknown" } });
    }
  }
}

/** Does so for options that are not in a table, which is complete by its type. */
export function refuseOthers<O extends object>(options: O, known: Record<keyof Required<O>, true>): void {
  refuseUnless(options, (name) => Object.hasOwn(known, name));
}
