// What has happened in a window: counts of the last rows added up, and the response times of a window from those of its
// seconds.
import type { ClassRows, Rows } from './rows';
import { OUTCOME_NAMES, SHADOW_NAMES } from './rows';
import type { OutcomeName, ShadowName } from './shapes';

export interface Sums {
    /** How long the window was. */
    seconds: number;
    outcomes: Record<OutcomeName, number>;
    shadow: Record<ShadowName, number>;
    ended: number;
    /** Of the orphaned, those that never ran. */
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

/** Of all work, the part that was useful; `undefined` where nobody worked. */
export const usefulShare = (sums: Sums): number | undefined => {
    const all = sums.usefulMs + sums.wastedMs;
    return all > 0 ? sums.usefulMs / all : undefined;
};

/** A part of the requests that ended. */
export const shareOf = (sums: Sums, names: readonly OutcomeName[]): number | undefined =>
    sums.ended > 0 ? names.reduce((sum, name) => sum + sums.outcomes[name], 0) / sums.ended : undefined;

export const each = (sums: Sums, names: readonly OutcomeName[]): number =>
    sums.seconds > 0 ? names.reduce((sum, name) => sum + sums.outcomes[name], 0) / sums.seconds : 0;

/** p50 and p99, where anything was answered. */
export interface Times {
    p50: number | undefined;
    p99: number | undefined;
}

/** Of each second: p50, p99, how many more for each millisecond up to p50 and from there to p99, and how many. */
const FIELDS = 5;
/** Is used again, as windows are read each second. */
let scratch = new Float64Array(FIELDS * 1024);

/**
 * Response times of a window, of those of its seconds. Each second says only its p50 and p99 and how many were answered:
 * between the two its share is taken to rise straight, below p50 from nothing, and nobody took longer than p99. About,
 * then.
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

/** Where the seconds in `scratch` together reach so many: by halving ratios until it is within a hundredth. */
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

/** How many were answered within so long. */
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
