// The time axis of a chart. A chart needs rising times, but the gateway's clock may be set back.
// Then only the rows after that jump are drawn, and the chart says so.

export interface Axis {
    /** The index of the first row to draw. */
    from: number;
    /**
     * The time of the first row after the clock was set back, in ms since 1970, and by how many ms
     * it was set back. Undefined if the clock was not set back.
     */
    jump: { at: number; ms: number } | undefined;
}

export function axis(atMs: ArrayLike<number>): Axis {
    for (let at = atMs.length - 1; at > 0; at -= 1) {
        const back = (atMs[at - 1] ?? 0) - (atMs[at] ?? 0);
        if (back >= 0) return { from: at, jump: { at: atMs[at] ?? 0, ms: back } };
    }
    return { from: 0, jump: undefined };
}

/**
 * Returns the times of the rows from index `from` on, in seconds, as charts need them. `atMs` is in
 * milliseconds.
 */
export const seconds = (atMs: Float64Array, from: number): Float64Array => atMs.slice(from).map(ms => ms / 1000);
