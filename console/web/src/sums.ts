// Sums over a window: the counts of its rows added up, and its response times from those of its
// seconds.
import type { ClassRows, Rows } from './rows';
import { OUTCOME_NAMES, SHADOW_NAMES } from './rows';
import type { OutcomeName, ShadowName } from './shapes';

export interface Sums {
    /** The length of the window. */
    seconds: number;
    outcomes: Record<OutcomeName, number>;
    shadow: Record<ShadowName, number>;
    ended: number;
    /** The number of orphaned requests that never ran. */
    leftWaiting: number;
    usefulMs: number;
    wastedMs: number;
    earned: number;
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

export function sums(rows: Rows, of: ClassRows | undefined, from: number, to = rows.length): Sums {
    const named = <N extends string>(names: readonly N[], sum: (name: N) => number): Record<N, number> =>
        Object.fromEntries(names.map(name => [name, of ? sum(name) : 0])) as Record<N, number>;
    const outcomes = named(OUTCOME_NAMES, name => of!.sum(name, from, to));
    return {
        seconds: rows.seconds(from, to),
        outcomes,
        shadow: named(SHADOW_NAMES, name => of!.sum(`shadow_${name}`, from, to)),
        ended: OUTCOME_NAMES.reduce((sum, name) => sum + outcomes[name], 0),
        leftWaiting: of?.sum('left_waiting', from, to) ?? 0,
        usefulMs: of?.sum('useful_ms', from, to) ?? 0,
        wastedMs: of?.sum('wasted_ms', from, to) ?? 0,
        earned: of?.sum('earned', from, to) ?? 0,
    };
}

/** Returns the useful fraction of all work, or `undefined` if there was no work. */
export const usefulShare = (sums: Sums): number | undefined => {
    const all = sums.usefulMs + sums.wastedMs;
    return all > 0 ? sums.usefulMs / all : undefined;
};

/** Returns the fraction of the ended requests that had one of these outcomes. */
export const shareOf = (sums: Sums, names: readonly OutcomeName[]): number | undefined =>
    sums.ended > 0 ? names.reduce((sum, name) => sum + sums.outcomes[name], 0) / sums.ended : undefined;

export const each = (sums: Sums, names: readonly OutcomeName[]): number =>
    sums.seconds > 0 ? names.reduce((sum, name) => sum + sums.outcomes[name], 0) / sums.seconds : 0;

/** The p50 and p99, if anything was answered. */
export interface Times {
    p50: number | undefined;
    p99: number | undefined;
}

/**
 * The number of fields of each second: p50, p99, answers per millisecond up to p50, answers per
 * millisecond from there to p99, and the number of answers.
 */
const FIELDS = 5;
/** The fields of all seconds. The buffer is reused, because windows are read each second. */
let scratch = new Float64Array(FIELDS * 1024);

/**
 * Returns the approximate response times of a window, from those of its seconds. Each second gives
 * only its p50, its p99 and the number of its answers. Its distribution is taken to rise linearly
 * from zero to p50 and from there to p99, and no answer is taken to be slower than p99.
 */
export function responseTimes(of: readonly ClassRows[], from: number, to?: number): Times {
    const columns = of.map(rows => ({
        served: rows.column('served'),
        late: rows.column('late'),
        p50: rows.column('p50_ms'),
        p99: rows.column('p99_ms'),
    }));
    let [length, all, shortest, longest] = [0, 0, Infinity, 0];
    for (const { served, late, p50, p99 } of columns) {
        const end = to ?? served.length;
        reserve(length + FIELDS * (end - from));
        for (let at = from; at < end; at += 1) {
            const count = served[at]! + late[at]!;
            const [half, most] = [p50[at]!, p99[at]!];
            if (!(count > 0) || Number.isNaN(half) || Number.isNaN(most)) continue;
            scratch[length] = half;
            scratch[length + 1] = most;
            scratch[length + 2] = half > 0 ? (0.5 * count) / half : 0;
            scratch[length + 3] = most > half ? (0.49 * count) / (most - half) : 0;
            scratch[length + 4] = count;
            length += FIELDS;
            all += count;
            if (half < shortest) shortest = half;
            if (most > longest) longest = most;
        }
    }
    if (all === 0) return { p50: undefined, p99: undefined };
    const p50 = reaches(0.5 * all, length, shortest, longest);
    return { p50, p99: reaches(0.99 * all, length, p50, longest) };
}

function reserve(length: number): void {
    if (length <= scratch.length) return;
    const larger = new Float64Array(2 * length);
    larger.set(scratch);
    scratch = larger;
}

/**
 * Returns the time within which `wanted` answers of the seconds in `scratch` were given. It bisects
 * by the geometric mean until the error is at most 1 %.
 */
function reaches(wanted: number, length: number, low: number, high: number): number {
    let [below, above] = [Math.max(low, high / 1e6), high];
    if (within(below, length) >= wanted) return below;
    while (above > below * 1.01) {
        const middle = Math.sqrt(below * above);
        if (within(middle, length) >= wanted) above = middle;
        else below = middle;
    }
    return above;
}

/** Returns how many answers were given within `ms`. */
function within(ms: number, length: number): number {
    let sum = 0;
    for (let at = 0; at < length; at += FIELDS) {
        const half = scratch[at]!;
        if (ms >= scratch[at + 1]!) sum += scratch[at + 4]!;
        else if (ms < half) sum += ms * scratch[at + 2]!;
        else sum += scratch[at + 2]! * half + (ms - half) * scratch[at + 3]!;
    }
    return sum;
}
