// The order of rows in a table: by one column, up or down. Unknown values come last either way.

export interface Order {
    id: string;
    isDown: boolean;
}

export type Key = number | string | null | undefined;

export function ordered<R>(rows: readonly R[], by: (row: R) => Key, isDown: boolean): R[] {
    const keyed = rows.map((row, at) => ({ row, at, key: by(row) }));
    keyed.sort((a, b) => {
        const missing = Number(isMissing(a.key)) - Number(isMissing(b.key));
        return missing || (isDown ? -1 : 1) * compared(a.key, b.key) || a.at - b.at;
    });
    return keyed.map(({ row }) => row);
}

const isMissing = (key: Key): boolean =>
    key === null || key === undefined || (typeof key === 'number' && Number.isNaN(key));

function compared(a: Key, b: Key): number {
    if (isMissing(a) || isMissing(b)) return 0;
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    return String(a).localeCompare(String(b));
}
