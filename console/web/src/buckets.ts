// Reduces a time series to few points. Rows are grouped from the newest backwards, so that points
// change gradually as rows arrive, and none jumps.

/**
 * Returns the sum of `of` for each group of `size` rows, divided by the sum of `per` if there is
 * one. A point is `undefined` where that sum is zero.
 */
export function buckets(
    length: number,
    size: number,
    of: (at: number) => number,
    per?: (at: number) => number,
): (number | undefined)[] {
    const points: (number | undefined)[] = [];
    for (let end = length; end >= size; end -= size) {
        let [sum, by] = [0, 0];
        for (let at = end - size; at < end; at += 1) {
            sum += of(at);
            by += per ? per(at) : 0;
        }
        points.push(per ? (by > 0 ? sum / by : undefined) : sum);
    }
    return points.reverse();
}
