// Rows of the history as the stream tells them: one typed array for each number, of which the last `capacity` rows are
// kept. All arrays share one pair of offsets, so a column is read as a view and nothing is copied to draw it. Rows are
// ordered by their numbers and never by time: the gateway's clock may be set.
import type { ClassColumns, Columns, OutcomeName, ShadowName } from './shapes';

export type GaugeName = Exclude<keyof Columns, 'step_s' | 'classes'>;
type ClassName =
    OutcomeName | `shadow_${ShadowName}` | 'useful_ms' | 'wasted_ms' | 'earned' | 'waiting' | 'p50_ms' | 'p99_ms';

const GAUGES: readonly GaugeName[] = [
    'number',
    'at_ms',
    'lasted_ms',
    'limit',
    'running',
    'waiting',
    'held',
    'oldest_ms',
    'newest_first',
    'mean_service_us',
    'sessions',
    'bypassed',
    'connections',
];
export const OUTCOME_NAMES: readonly OutcomeName[] = [
    'served',
    'late',
    'shed',
    'throttled',
    'expired',
    'terminated',
    'orphaned',
    'upstream_error',
];
export const SHADOW_NAMES: readonly ShadowName[] = ['run', 'refused', 'stopped', 'waiting'];
const ADDED: readonly ClassName[] = [
    ...OUTCOME_NAMES,
    ...SHADOW_NAMES.map(name => `shadow_${name}` as const),
    'useful_ms',
    'wasted_ms',
    'earned',
    'waiting',
];
const QUANTILES: readonly ClassName[] = ['p50_ms', 'p99_ms'];

const listOf = (of: ClassColumns, name: ClassName): readonly (number | null)[] =>
    name.startsWith('shadow_')
        ? of.shadow[name.slice(7) as ShadowName]
        : name in of.outcomes
          ? of.outcomes[name as OutcomeName]
          : of[name as 'useful_ms' | 'p50_ms'];

export class Rows {
    stepS = 1;
    /** Another one whenever all rows are others: a number may be given again. */
    epoch = 0;
    /** Another one whenever rows have come. */
    version = 0;
    private from = 0;
    private to = 0;
    private readonly room: number;
    private readonly gauges: Record<GaugeName, Float64Array>;
    private readonly byClass = new Map<string, ClassRows>();
    private readonly sums: ClassRows;

    constructor(readonly capacity = 900) {
        this.room = Math.ceil(capacity * 1.5);
        this.gauges = Object.fromEntries(GAUGES.map(name => [name, new Float64Array(this.room)])) as Record<
            GaugeName,
            Float64Array
        >;
        this.sums = new ClassRows(this.room, this.bounds);
    }

    get length(): number {
        return this.to - this.from;
    }

    get last(): number | undefined {
        return this.gauges.number[this.to - 1];
    }

    /** A number of the gateway, row by row. It is valid until rows come. */
    gauge(name: GaugeName): Float64Array {
        return this.gauges[name].subarray(this.from, this.to);
    }

    class(name: string): ClassRows | undefined {
        return this.byClass.get(name);
    }

    classNames(): string[] {
        return [...this.byClass.keys()];
    }

    /** All classes together. It has no response times. */
    get total(): ClassRows {
        return this.sums;
    }

    /** The first row of the last so many seconds, by how long rows lasted. */
    since(seconds: number): number {
        const lasted = this.gauge('lasted_ms');
        const wanted = seconds * 1000 - this.stepS * 500;
        let at = lasted.length;
        for (let sum = 0; at > 0 && sum < wanted;) sum += lasted[--at] ?? 0;
        return at;
    }

    /** These rows and no others. */
    anew(columns: Columns): void {
        this.epoch += 1;
        this.from = this.to = 0;
        this.byClass.clear();
        this.append(columns);
    }

    /** Rows after those that there are; what is there already is left alone. Says how many were new. */
    append(columns: Columns): number {
        this.stepS = columns.step_s;
        this.version += 1;
        const last = this.length > 0 ? (this.last ?? -1) : -1;
        const first = columns.number.findIndex(number => number > last);
        if (first < 0) return 0;
        const begin = Math.max(first, columns.number.length - this.capacity);
        const told = columns.classes.map((of): Told => {
            const rows = this.byClass.get(of.name) ?? this.begin(of.name);
            return {
                rows,
                added: ADDED.map(name => listOf(of, name)),
                quantiles: QUANTILES.map(name => listOf(of, name)),
            };
        });
        const present = new Set(told.map(({ rows }) => rows));
        const silent = [...this.byClass.values()].filter(rows => !present.has(rows));
        for (let at = begin; at < columns.number.length; at += 1) {
            if (this.to === this.room) this.shift();
            for (const name of GAUGES) this.gauges[name][this.to] = Number(columns[name][at] ?? 0);
            this.push(told, silent, at);
        }
        return columns.number.length - begin;
    }

    private readonly bounds = (): [number, number] => [this.from, this.to];

    private push(told: readonly Told[], silent: readonly ClassRows[], at: number): void {
        const to = this.to;
        const sums = this.sums.added;
        this.sums.clear(to);
        for (const rows of silent) rows.clear(to);
        for (const { rows, added, quantiles } of told) {
            for (let place = 0; place < added.length; place += 1) {
                const value = added[place]![at] ?? 0;
                rows.added[place]![to] = value;
                sums[place]![to]! += value;
            }
            for (let place = 0; place < quantiles.length; place += 1)
                rows.quantiles[place]![to] = quantiles[place]![at] ?? NaN;
        }
        this.to += 1;
        this.from = Math.max(this.from, this.to - this.capacity);
    }

    private begin(name: string): ClassRows {
        const rows = new ClassRows(this.room, this.bounds);
        this.byClass.set(name, rows);
        return rows;
    }

    private shift(): void {
        const { from, to } = this;
        for (const name of GAUGES) this.gauges[name].copyWithin(0, from, to);
        this.sums.shift(from, to);
        for (const rows of this.byClass.values()) rows.shift(from, to);
        this.from = 0;
        this.to = to - from;
    }
}

/** A class in rows that come. */
interface Told {
    rows: ClassRows;
    added: readonly (readonly (number | null)[])[];
    quantiles: readonly (readonly (number | null)[])[];
}

/** One class in the rows. */
export class ClassRows {
    /** In the order of `ADDED` and of `QUANTILES`. */
    readonly added: readonly Float32Array[];
    readonly quantiles: readonly Float32Array[];
    private readonly byName: ReadonlyMap<ClassName, Float32Array>;

    constructor(
        room: number,
        private readonly bounds: () => [number, number],
    ) {
        this.added = ADDED.map(() => new Float32Array(room));
        this.quantiles = QUANTILES.map(() => new Float32Array(room).fill(NaN));
        const lists = [...this.added, ...this.quantiles];
        this.byName = new Map([...ADDED, ...QUANTILES].map((name, place) => [name, lists[place]!]));
    }

    /** Valid until rows come. */
    column(name: ClassName): Float32Array {
        return this.byName.get(name)!.subarray(...this.bounds());
    }

    clear(at: number): void {
        for (const list of this.added) list[at] = 0;
        for (const list of this.quantiles) list[at] = NaN;
    }

    shift(from: number, to: number): void {
        for (const list of this.byName.values()) list.copyWithin(0, from, to);
    }
}
