// Pairs the cells of two laboratory results: those of the same policy, load and visibility of
// disconnects.
import type { Cell, Result } from './result';

export interface Pair {
    name: string;
    left: Cell | undefined;
    right: Cell | undefined;
}

export const nameOf = (cell: Cell): string => `${cell.policy}, ρ ${cell.rho ?? '–'}, closes ${cell.closes}`;

export function pairs(left: Result, right: Result): Pair[] {
    const byName = new Map<string, Pair>();
    for (const cell of left.cells) byName.set(nameOf(cell), { name: nameOf(cell), left: cell, right: undefined });
    for (const cell of right.cells)
        byName.set(nameOf(cell), { name: nameOf(cell), left: byName.get(nameOf(cell))?.left, right: cell });
    return [...byName.values()];
}

export interface Difference {
    absolute: number;
    /** The difference as a fraction of the first value; `undefined` if the first value is zero. */
    relative: number | undefined;
}

export function difference(left: number | undefined, right: number | undefined): Difference | undefined {
    if (left === undefined || right === undefined) return undefined;
    return { absolute: right - left, relative: left === 0 ? undefined : (right - left) / left };
}
