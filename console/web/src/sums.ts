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
    usefulMs: number;
    wastedMs: number;
    earned: number;
}

export const WINDOWS = { '10s': 10, '60s': 60, '15m': 900, '24h': 86_400 } as const;
export type WindowName = keyof typeof WINDOWS;
export const WINDOW_TEXT: Record<WindowName, string> = {
    '10s': 'last 10 s',
    '60s': 'last 60 s',
    '15m': 'last 15 min',
    '24h': 'last 24 h',
};
export const windowNamed = (name: string | undefined): WindowName =>
    name !== undefined && name in WINDOWS ? (name as WindowName) : '60s';

export function sums(rows: Rows, of: ClassRows | undefined, from: number, to = rows.length): Sums {
    const add = (list: Float32Array | Float64Array): number => {
        let sum = 0;
        for (let at = from; at < to; at += 1) sum += list[at] ?? 0;
        return sum;
    };
    const named = <N extends string>(names: readonly N[], column: (name: N) => Float32Array): Record<N, number> =>
        Object.fromEntries(names.map(name => [name, of ? add(column(name)) : 0])) as Record<N, number>;
    const outcomes = named(OUTCOME_NAMES, name => of!.column(name));
    return {
        seconds: add(rows.gauge('lasted_ms')) / 1000,
        outcomes,
        shadow: named(SHADOW_NAMES, name => of!.column(`shadow_${name}`)),
        ended: OUTCOME_NAMES.reduce((sum, name) => sum + outcomes[name], 0),
        usefulMs: of ? add(of.column('useful_ms')) : 0,
        wastedMs: of ? add(of.column('wasted_ms')) : 0,
        earned: of ? add(of.column('earned')) : 0,
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

/** Of each second: how many were answered, its p50 and its p99. Used again, as windows are read each second. */
let scratch = new Float64Array(3 * 1024);

/**
 * Response times of a window, of those of its seconds. Each second says only its p50 and p99 and how many were answered:
 * between the two its share is taken to rise straight, below p50 from nothing, and nobody took longer than p99. About,
 * then.
 */
export function responseTimes(of: readonly ClassRows[], from: number, to?: number): Times {
    let [length, all, longest] = [0, 0, 0];
    for (const rows of of) {
        const served = rows.column('served');
        const [late, p50, p99] = [rows.column('late'), rows.column('p50_ms'), rows.column('p99_ms')];
        const end = to ?? served.length;
        if (length + 3 * (end - from) > scratch.length) {
            const larger = new Float64Array(2 * (length + 3 * (end - from)));
            larger.set(scratch);
            scratch = larger;
        }
        for (let at = from; at < end; at += 1) {
            const count = (served[at] ?? 0) + (late[at] ?? 0);
            const [half, most] = [p50[at] ?? NaN, p99[at] ?? NaN];
            if (!(count > 0) || Number.isNaN(half) || Number.isNaN(most)) continue;
            scratch[length] = count;
            scratch[length + 1] = half;
            scratch[length + 2] = most;
            length += 3;
            all += count;
            longest = Math.max(longest, most);
        }
    }
    return { p50: quantile(0.5, length, all, longest), p99: quantile(0.99, length, all, longest) };
}

/** Where the seconds in `scratch` together reach this part, by halving. */
function quantile(part: number, length: number, all: number, longest: number): number | undefined {
    if (all === 0) return undefined;
    let [below, above] = [0, longest];
    for (let step = 0; step < 18; step += 1) {
        const middle = (below + above) / 2;
        let within = 0;
        for (let at = 0; at < length; at += 3) {
            const [half, most] = [scratch[at + 1]!, scratch[at + 2]!];
            const share =
                middle >= most
                    ? 1
                    : middle < half
                      ? (0.5 * middle) / half
                      : 0.5 + (0.49 * (middle - half)) / (most - half);
            within += scratch[at]! * share;
        }
        if (within >= part * all) above = middle;
        else below = middle;
    }
    return above;
}
