import { InvalidArgument } from "./errors.js";

/**
 * Throws InvalidArgument for an option that is not among those known: a misspelt one would be ignored in silence,
 * where no compiler reads the types. The table of what is known is complete by its type.
 */
export function refuseOthers<O extends object>(options: O, known: Record<keyof Required<O>, true>): void {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name)) {
      throw new InvalidArgument(`${name}: there is no such option`, { fields: { [name]: "is unknown" } });
    }
  }
}
