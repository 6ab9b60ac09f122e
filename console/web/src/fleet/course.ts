// The requests of each gateway of a fleet over time, and of all gateways together, on one time axis.
import type { FleetGateway, HistorySummary } from '../shapes';

const NAMES = ['answered_per_s', 'refused_per_s', 'waiting'] as const;
/** The values of the steps. A value is undefined where the gateway has none. */
export type Course = (number | undefined)[];

/** A gateway with its last summary, and why it did not answer the last question. */
export interface Known extends FleetGateway {
    history?: HistorySummary | undefined;
    problem?: string | undefined;
}

export interface Courses {
    /** The end of the last step, in ms since 1970; not finite if no gateway has a step. */
    end: number;
    /** The courses of each gateway: of answered, refused and waiting requests. */
    each: Course[][];
    /** The sums over the gateways. */
    all: Course[];
}

/** The length of a step in milliseconds. */
const STEP = 10_000;
const STEPS = 90;

export const isSilent = (one: Known): boolean => !one.is_current || !!one.problem;

/**
 * Returns the courses of all gateways. They end with the last step that every answering gateway has
 * reached. The times are those of the documents. If the clock of a gateway differs by more than
 * half a step, its steps are moved by whole steps.
 */
export function courses(gateways: readonly Known[]): Courses {
    let end = Infinity;
    const found = gateways.map(one => {
        const shift = Math.round((one.clock_ms ?? 0) / STEP) * STEP;
        const times = (one.history?.at_ms ?? []).map(ms => ms - shift);
        if (!isSilent(one)) end = Math.min(end, times.at(-1) ?? end);
        return { history: one.history, places: new Map(times.map((ms, place) => [ms, place])) };
    });
    const times = Array.from({ length: STEPS }, (_, at) => end - (STEPS - 1 - at) * STEP);
    const each = found.map(({ history, places }) =>
        NAMES.map(name => times.map(ms => history?.[name][places.get(ms) ?? -1])),
    );
    const all = NAMES.map((_, place) => times.map((_, at) => sum(each.map(one => one[place]![at]))));
    return { end, each, all };
}

const sum = (values: Course): number | undefined =>
    values.reduce((sum, value) => (value === undefined ? sum : value + (sum ?? 0)), undefined);
