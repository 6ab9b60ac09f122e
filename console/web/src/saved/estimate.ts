// Estimates the work that was saved: the number of requests that never ran, times the mean service
// time of their class in the window. The estimate is too high if mostly quick requests were
// refused, or if refused clients would have left before their requests ran.
import type { ClassRows, Rows } from '../rows';
import { sums } from '../sums';

export interface Saved {
    requests: number;
    /** The estimated service time that was saved, in ms. */
    ms: number;
}

export function savedBy(rows: Rows, of: ClassRows, from: number): Saved {
    const { outcomes, leftWaiting, ended, usefulMs, wastedMs } = sums(rows, of, from);
    const requests = outcomes.shed + outcomes.expired + outcomes.throttled + leftWaiting;
    const ran = ended - requests;
    return { requests, ms: requests * (ran > 0 ? (usefulMs + wastedMs) / ran : meanOf(rows, from)) };
}

/**
 * Returns the mean service time of all classes in ms. It is used for a class of which no request
 * ran.
 */
function meanOf(rows: Rows, from: number): number {
    const mean = rows.gauge('mean_service_us').slice(from);
    return mean.length > 0 ? mean.reduce((sum, us) => sum + us, 0) / mean.length / 1000 : 0;
}

export function savedByAll(rows: Rows, from: number): Saved {
    const each = rows.classNames().map(name => savedBy(rows, rows.class(name)!, from));
    return {
        requests: each.reduce((sum, one) => sum + one.requests, 0),
        ms: each.reduce((sum, one) => sum + one.ms, 0),
    };
}
