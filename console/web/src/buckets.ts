// The course of a number in few points: rows taken together from the newest backwards, so that a point changes as rows
// come and none jumps.

/** Sums of `of`, over sums of `per` if there is one; `undefined` where that is nothing. */
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
