// The time axis. A chart needs times that rise, and the gateway's clock may be set back: then only what came after is
// drawn, and it is said.

export interface Axis {
    /** The first row that is drawn. */
    from: number;
    /** When the clock was set back, and by how much, if it was. */
    jump: { at: number; ms: number } | undefined;
}

export function axis(atMs: ArrayLike<number>): Axis {
    for (let at = atMs.length - 1; at > 0; at -= 1) {
        const back = (atMs[at - 1] ?? 0) - (atMs[at] ?? 0);
        if (back >= 0) return { from: at, jump: { at: atMs[at] ?? 0, ms: back } };
    }
    return { from: 0, jump: undefined };
}

/** In seconds, as charts have it. */
export const seconds = (atMs: Float64Array, from: number): Float64Array => atMs.slice(from).map(ms => ms / 1000);
