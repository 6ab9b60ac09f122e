// Reads a result of the laboratory, as `bywash lab … --json` writes it
// (lab/crates/scenario/src/result.rs). Every field is checked, because a file may come from another
// version, or may not be a result at all. Missing values are unknown.

export interface Cell {
    policy: string;
    rho: number | undefined;
    closes: string;
    completed: number | undefined;
    timedOut: number | undefined;
    dropped: number | undefined;
    terminated: number | undefined;
    useful: number | undefined;
    wasted: number | undefined;
    revenue: number | undefined;
    orders: number | undefined;
    p50: number | undefined;
    p99: number | undefined;
}

export interface Result {
    scenario: string;
    seeds: number;
    /** Why the figures must not be used; undefined if they are valid. */
    invalid: string | undefined;
    cells: Cell[];
}

type Fields = Record<string, unknown>;

/** Parses the text of a file. Returns the result, or the reason why the text is not a result. */
export function readText(text: string): Result | string {
    try {
        return readResult(JSON.parse(text));
    } catch {
        return 'The file is not valid JSON.';
    }
}

export function readResult(value: unknown): Result | string {
    const result = fields(value);
    if (!result || !Array.isArray(result.cells))
        return 'The file is not a result of `bywash lab … --json`: it has no cells.';
    const cells = result.cells.map(fields).filter((cell): cell is Fields => cell !== undefined);
    return {
        scenario: word(result.scenario) ?? 'unnamed',
        seeds: Array.isArray(result.seeds) ? result.seeds.length : 0,
        invalid: word(result.invalid),
        cells: cells.map(cellOf),
    };
}

function cellOf(cell: Fields): Cell {
    const base = (amount(cell.generated) ?? 0) + (amount(cell.not_generated) ?? 0);
    const part = (name: string): number | undefined => {
        const of = amount(cell[name]);
        return of === undefined || base === 0 ? undefined : of / base;
    };
    const response = fields(cell.response)?.all;
    return {
        policy: word(cell.policy) ?? 'unnamed',
        rho: amount(cell.rho),
        closes: word(cell.closes) ?? '–',
        completed: part('completed'),
        timedOut: part('timed_out'),
        dropped: part('dropped'),
        terminated: part('terminated'),
        useful: amount(cell.useful_work),
        wasted: amount(cell.wasted_work),
        revenue: amount(cell.revenue_share),
        orders: amount(cell.orders),
        p50: quantile(response, 0.5),
        p99: quantile(response, 0.99),
    };
}

/**
 * Returns a quantile from pairs of milliseconds and cumulative fractions, both ascending. Returns
 * `undefined` if there is no such pair.
 */
function quantile(of: unknown, share: number): number | undefined {
    if (!Array.isArray(of)) return undefined;
    const found: unknown = of.find(
        (pair: unknown) => Array.isArray(pair) && typeof pair[1] === 'number' && pair[1] >= share,
    );
    return Array.isArray(found) ? amount(found[0]) : undefined;
}

const fields = (value: unknown): Fields | undefined =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
const amount = (value: unknown): number | undefined =>
    typeof value === 'number' && Number.isFinite(value) ? value : undefined;
const word = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
