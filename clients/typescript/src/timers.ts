/** The longest time of a timer, in milliseconds: one that is set for longer fires at once. */
export const TIMER_MAX = 2 ** 31 - 1;
/** The longest pause that a server may ask for, in milliseconds. */
export const ASKED_MAX = 3_600_000;
