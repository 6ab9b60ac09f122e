// Sums over a window: either the counts of its rows, added up, or the sums of a class as the
// gateway returns them, with response times.
import { lasting } from './format';
import type { ClassRows, Rows } from './rows';
import { OUTCOME_NAMES, SHADOW_NAMES } from './rows';
import type { OutcomeName, ShadowName, WindowSums } from './shapes';

/** The requests that ended in a window. */
export interface Outcomes {
    /** The length of the window, in seconds. */
    seconds: number;
    outcomes: Record<OutcomeName, number>;
    ended: number;
}

export interface Sums extends Outcomes {
    shadow: Record<ShadowName, number>;
    /** The number of orphaned requests that never ran. */
    leftWaiting: number;
    usefulMs: number;
    wastedMs: number;
    revenue: number;
}

export const WINDOWS = { '10s': 10, '60s': 60, '15m': 900, '24h': 86_400 } as const;
export type WindowName = keyof typeof WINDOWS;
export const WINDOW_NAMES = Object.keys(WINDOWS) as WindowName[];
export const WINDOW_TEXT: Record<WindowName, string> = {
    '10s': 'last 10 s',
    '60s': 'last 60 s',
    '15m': 'last 15 min',
    '24h': 'last 24 h',
};
export const windowNamed = (name: string | undefined): WindowName =>
    name !== undefined && name in WINDOWS ? (name as WindowName) : '60s';

/**
 * Returns a text about the real length of a window, if it differs from the nominal length by more
 * than a second. The real length is shorter if the gateway has not run for that long. It is longer
 * if the newest reading from before the window is older than the nominal begin.
 */
export function realLength(window: WindowName, seconds: number | undefined): string {
    if (seconds === undefined) return '';
    const longer = seconds - WINDOWS[window];
    if (longer < -1) return ` (${lasting(seconds * 1000)} so far)`;
    return longer > 1 ? ` (${lasting(longer * 1000)} longer)` : '';
}

const named = <N extends string>(names: readonly N[], value: (name: N) => number): Record<N, number> =>
    Object.fromEntries(names.map(name => [name, value(name)])) as Record<N, number>;

const endedOf = (outcomes: Record<OutcomeName, number>): number =>
    OUTCOME_NAMES.reduce((sum, name) => sum + outcomes[name], 0);

export function sums(rows: Rows, of: ClassRows | undefined, from: number, to = rows.length): Sums {
    const outcomes = named(OUTCOME_NAMES, name => of?.sum(name, from, to) ?? 0);
    return {
        seconds: rows.seconds(from, to),
        outcomes,
        shadow: named(SHADOW_NAMES, name => of?.sum(`shadow_${name}`, from, to) ?? 0),
        ended: endedOf(outcomes),
        leftWaiting: of?.sum('left_waiting', from, to) ?? 0,
        usefulMs: of?.sum('useful_ms', from, to) ?? 0,
        wastedMs: of?.sum('wasted_ms', from, to) ?? 0,
        revenue: of?.sum('revenue', from, to) ?? 0,
    };
}

/**
 * The sums of a class as the gateway returns them. Response times are undefined if nothing was
 * answered.
 */
export interface ClassSums extends Outcomes {
    p50: number | undefined;
    p99: number | undefined;
}

/**
 * Returns the sums of a class. They are zero if no request of the class ended. If the gateway has
 * not answered, the window has length zero.
 */
export function classSums(window: WindowSums | undefined, name: string): ClassSums {
    const of = window?.classes.find(one => one.name === name);
    const outcomes = of?.outcomes ?? named(OUTCOME_NAMES, () => 0);
    return {
        seconds: window?.length_s ?? 0,
        outcomes,
        ended: endedOf(outcomes),
        p50: of?.p50_ms ?? undefined,
        p99: of?.p99_ms ?? undefined,
    };
}

/** Returns the useful fraction of all work, or `undefined` if there was no work. */
export const usefulShare = (sums: Sums): number | undefined => {
    const all = sums.usefulMs + sums.wastedMs;
    return all > 0 ? sums.usefulMs / all : undefined;
};

/** Returns the fraction of the ended requests that had one of the outcomes `names`. */
export const shareOf = (sums: Outcomes, names: readonly OutcomeName[]): number | undefined =>
    sums.ended > 0 ? names.reduce((sum, name) => sum + sums.outcomes[name], 0) / sums.ended : undefined;

/** Returns the number of requests per second that ended with one of the outcomes `names`. */
export const each = (sums: Outcomes, names: readonly OutcomeName[]): number | undefined =>
    sums.seconds > 0 ? names.reduce((sum, name) => sum + sums.outcomes[name], 0) / sums.seconds : undefined;
