// Before and after a moment, of some classes: a minute before it, and the last minute since.
import type { ClassRows, Rows } from '../rows';
import { responseTimes, sums, type Times, timesOf, usefulShare } from '../sums';

export interface Side extends Times {
    seconds: number;
    /** Of the requests of these classes that ended. */
    served: number | undefined;
    useful: number | undefined;
    /** A second, of all classes. */
    throttled: number;
}

const MINUTE = 60;

export function compared(rows: Rows, of: readonly ClassRows[], since: number): { before: Side; now: Side } {
    const at = rows.gauge('at_ms');
    let split = at.length;
    while (split > 0 && (at[split - 1] ?? 0) > since) split -= 1;
    return {
        before: side(rows, of, Math.max(0, split - MINUTE), split),
        now: side(rows, of, Math.max(split, at.length - MINUTE), at.length),
    };
}

function side(rows: Rows, of: readonly ClassRows[], from: number, to: number): Side {
    const all = sums(rows, rows.total, from, to);
    const each = of.map(one => sums(rows, one, from, to));
    const ended = each.reduce((sum, one) => sum + one.ended, 0);
    return {
        seconds: all.seconds,
        ...responseTimes(of, from, to),
        served: ended > 0 ? each.reduce((sum, one) => sum + one.outcomes.served, 0) / ended : undefined,
        useful: usefulShare(all),
        throttled: all.seconds > 0 ? all.outcomes.throttled / all.seconds : 0,
    };
}

/** Response times row by row; about, as those of several classes are put together. Each row is read once. */
export class Course {
    private known = new Map<number, Times>();
    private key = '';

    of(rows: Rows, names: readonly string[], from: number): Record<keyof Times, (number | null)[]> {
        const key = [rows.epoch, ...names].join('\n');
        if (this.key !== key) {
            this.key = key;
            this.known.clear();
        }
        const read = timesOf(names.flatMap(name => rows.class(name) ?? []));
        const kept = new Map<number, Times>();
        const numbers = rows.gauge('number');
        for (let at = from; at < numbers.length; at += 1) {
            const number = numbers[at] ?? 0;
            kept.set(number, this.known.get(number) ?? read(at, at + 1));
        }
        this.known = kept;
        const times = [...kept.values()];
        return { p50: times.map(one => one.p50 ?? null), p99: times.map(one => one.p99 ?? null) };
    }
}
