// Rows of the history for tests. All values are zero, except those that a test sets.
import { OUTCOME_NAMES, SHADOW_NAMES } from '../src/rows';
import type { ClassColumns, Columns } from '../src/shapes';

type Given = Partial<Omit<Columns, 'classes'>> & {
    classes?: Record<string, Partial<Record<string, (number | null)[]>>>;
};

export function columns(numbers: number[], { classes = {}, ...given }: Given = {}): Columns {
    const all = <T>(value: T): T[] => numbers.map(() => value);
    return {
        step_s: 1,
        number: numbers,
        at_ms: numbers.map(number => number * 1000),
        lasted_ms: all(1000),
        limit: all(10),
        running: all(0),
        waiting: all(0),
        throttled_waiting: all(0),
        oldest_ms: all(0),
        lifo: all(false),
        mean_service_us: all(0),
        sessions: all(0),
        bypassed: all(false),
        connections: all(0),
        ...given,
        classes: Object.entries(classes).map(([name, lists]): ClassColumns => {
            const list = (of: string): number[] => (lists[of] as number[] | undefined) ?? all(0);
            return {
                name,
                outcomes: Object.fromEntries(OUTCOME_NAMES.map(of => [of, list(of)])) as ClassColumns['outcomes'],
                shadow: Object.fromEntries(
                    SHADOW_NAMES.map(of => [of, list(`shadow_${of}`)]),
                ) as ClassColumns['shadow'],
                left_waiting: list('left_waiting'),
                useful_ms: list('useful_ms'),
                wasted_ms: list('wasted_ms'),
                revenue: list('revenue'),
                waiting: list('waiting'),
                p50_ms: lists.p50_ms ?? all(null),
                p99_ms: lists.p99_ms ?? all(null),
                may_run_ms: lists.may_run_ms ?? [],
            };
        }),
    };
}

export const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at);
