// About how much work was not begun for nothing: requests that never ran, each for as long as requests took on average
// in that row. Too high where quick ones were refused, or where a refused client would have gone before its turn.
import type { ClassRows, Rows } from '../rows';

export interface Saved {
    requests: number;
    /** Of service. */
    ms: number;
}

export function savedBy(rows: Rows, of: ClassRows, from: number): Saved {
    const [shed, expired, throttled] = [of.column('shed'), of.column('expired'), of.column('throttled')];
    const left = of.column('left_waiting');
    const mean = rows.gauge('mean_service_us');
    let [requests, ms] = [0, 0];
    for (let at = from; at < mean.length; at += 1) {
        const never = shed[at]! + expired[at]! + throttled[at]! + left[at]!;
        requests += never;
        ms += (never * mean[at]!) / 1000;
    }
    return { requests, ms };
}
