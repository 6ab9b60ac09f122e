// Rows of the history, as the stream delivers them: one typed array for each number, of which the
// last `capacity` rows are kept. All arrays share one pair of offsets, so a column is read as a
// view, and drawing it copies nothing. Columns that can be added up have prefix sums next to them,
// so the sum of a window is one subtraction. Rows are ordered by their numbers and never by time,
// because the gateway's clock may be set.
import type { ClassColumns, Columns, OutcomeName, ShadowName } from './shapes';

export type GaugeName = Exclude<keyof Columns, 'step_s' | 'classes'>;
type AddedName =
    OutcomeName | `shadow_${ShadowName}` | 'left_waiting' | 'useful_ms' | 'wasted_ms' | 'revenue' | 'waiting';
type OtherName = 'p50_ms' | 'p99_ms' | 'may_run_ms';
type ClassName = AddedName | OtherName;

const GAUGES: readonly GaugeName[] = [
    'number',
    'at_ms',
    'lasted_ms',
    'limit',
    'running',
    'waiting',
    'throttled_waiting',
    'oldest_ms',
    'lifo',
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
const ADDED: readonly AddedName[] = [
    ...OUTCOME_NAMES,
    ...SHADOW_NAMES.map(name => `shadow_${name}` as const),
    'left_waiting',
    'useful_ms',
    'wasted_ms',
    'revenue',
    'waiting',
];
/** Columns that cannot be added up, and whose values may be unknown. */
const OTHERS: readonly OtherName[] = ['p50_ms', 'p99_ms', 'may_run_ms'];

const listOf = (of: ClassColumns, name: ClassName): readonly (number | null)[] | undefined =>
    name.startsWith('shadow_')
        ? of.shadow[name.slice(7) as ShadowName]
        : name in of.outcomes
          ? of.outcomes[name as OutcomeName]
          : of[name as 'useful_ms' | 'p50_ms'];

/** The range of indices of the arrays that is in use. */
interface Span {
    from: number;
    to: number;
}

export class Rows {
    stepS = 1;
    /**
     * Increases whenever all rows are replaced, because numbers of rows may then be given again.
     */
    epoch = 0;
    /** A number that increases whenever rows arrive. */
    version = 0;
    private readonly room: number;
    private span: Span = { from: 0, to: 0 };
    private gauges: Record<GaugeName, Float64Array>;
    /** The prefix sums of the durations of rows, in ms. */
    private lasted: Float64Array;
    private byClass = new Map<string, ClassRows>();
    private sums: ClassRows;

    constructor(readonly capacity = 900) {
        this.room = Math.ceil(capacity * 1.5);
        this.gauges = Object.fromEntries(GAUGES.map(name => [name, new Float64Array(this.room)])) as Record<
            GaugeName,
            Float64Array
        >;
        this.lasted = new Float64Array(this.room + 1);
        this.sums = new ClassRows(this.room, this.span);
    }

    get length(): number {
        return this.span.to - this.span.from;
    }

    get last(): number | undefined {
        return this.gauges.number[this.span.to - 1];
    }

    /** Returns a number of the gateway, row by row. The view is valid until rows arrive. */
    gauge(name: GaugeName): Float64Array {
        return this.gauges[name].subarray(this.span.from, this.span.to);
    }

    class(name: string): ClassRows | undefined {
        return this.byClass.get(name);
    }

    classNames(): string[] {
        return [...this.byClass.keys()];
    }

    /** The sums over all classes. They have no response times. */
    get total(): ClassRows {
        return this.sums;
    }

    /**
     * Returns the total duration of the rows from index `from` to before index `to`, in seconds.
     */
    seconds(from: number, to: number): number {
        return difference(this.lasted, this.span, from, to) / 1000;
    }

    /**
     * Returns the index of the first row of the last `seconds` seconds, according to the durations
     * of the rows.
     */
    since(seconds: number): number {
        const wanted = seconds - this.stepS / 2;
        let at = this.length;
        while (at > 0 && this.seconds(at, this.length) < wanted) at -= 1;
        return at;
    }

    /** Replaces all rows by those of `columns`. */
    anew(columns: Columns): void {
        finish(this.renewing(columns));
    }

    /**
     * Replaces all rows by those of `columns`, one class a step. The earlier rows stay visible
     * until the last step.
     */
    *renewing(columns: Columns): Generator<void> {
        const fresh = new Rows(this.capacity);
        yield* fresh.appending(columns);
        this.epoch += 1;
        this.version += 1;
        this.stepS = fresh.stepS;
        this.span = fresh.span;
        this.gauges = fresh.gauges;
        this.lasted = fresh.lasted;
        this.byClass = fresh.byClass;
        this.sums = fresh.sums;
    }

    /**
     * Appends the rows of `columns` that are newer than the last row, and ignores the others.
     * Returns the number of new rows.
     */
    append(columns: Columns): number {
        return finish(this.appending(columns));
    }

    private *appending(columns: Columns): Generator<void, number> {
        this.stepS = columns.step_s;
        this.version += 1;
        const last = this.length > 0 ? (this.last ?? -1) : -1;
        const first = columns.number.findIndex(number => number > last);
        if (first < 0) return 0;
        const begin = Math.max(first, columns.number.length - this.capacity);
        const count = columns.number.length - begin;
        if (this.span.to + count > this.room) this.shift(count);
        const { to } = this.span;
        for (const name of GAUGES)
            for (let at = 0; at < count; at += 1) this.gauges[name][to + at] = Number(columns[name][begin + at] ?? 0);
        for (let at = to; at < to + count; at += 1) this.lasted[at + 1] = this.lasted[at]! + this.gauges.lasted_ms[at]!;
        this.sums.clear(to, count);
        const silent = new Set(this.byClass.values());
        for (const of of columns.classes) {
            const rows = this.byClass.get(of.name) ?? this.begin(of.name);
            silent.delete(rows);
            rows.write(of, to, begin, count);
            this.sums.add(rows, to, count);
            yield;
        }
        for (const rows of silent) rows.clear(to, count);
        for (const rows of [this.sums, ...silent]) rows.addUp(to, count);
        this.span.to += count;
        this.span.from = Math.max(this.span.from, this.span.to - this.capacity);
        return count;
    }

    private begin(name: string): ClassRows {
        const rows = new ClassRows(this.room, this.span);
        this.byClass.set(name, rows);
        return rows;
    }

    /**
     * Moves the rows to the beginning of the arrays. Rows that will be too old when `coming` more
     * rows have arrived are dropped.
     */
    private shift(coming: number): void {
        const from = Math.max(this.span.from, this.span.to - Math.max(0, this.capacity - coming));
        const { to } = this.span;
        for (const name of GAUGES) this.gauges[name].copyWithin(0, from, to);
        this.lasted.copyWithin(0, from, to + 1);
        this.sums.shift(from, to);
        for (const rows of this.byClass.values()) rows.shift(from, to);
        this.span.from = 0;
        this.span.to = to - from;
    }
}

function finish<T>(steps: Generator<void, T>): T {
    for (;;) {
        const { done, value } = steps.next();
        if (done) return value;
    }
}

const difference = (sums: Float64Array, { from: base }: Span, from: number, to: number): number =>
    sums[base + to]! - sums[base + from]!;

/** The values of one class, row by row. */
export class ClassRows {
    /**
     * The columns that can be added up, in the order of `ADDED`. `sums` has the prefix sums of
     * each.
     */
    private readonly added: readonly Float32Array[];
    private readonly sums: readonly Float64Array[];
    /** The columns that cannot be added up, in the order of `OTHERS`. */
    private readonly others: readonly Float32Array[];
    private readonly byName: ReadonlyMap<ClassName, Float32Array>;
    private readonly sumByName: ReadonlyMap<ClassName, Float64Array>;

    constructor(
        room: number,
        private readonly span: Span,
    ) {
        this.added = ADDED.map(() => new Float32Array(room));
        this.sums = ADDED.map(() => new Float64Array(room + 1));
        this.others = OTHERS.map(() => new Float32Array(room).fill(NaN));
        const lists = [...this.added, ...this.others];
        this.byName = new Map([...ADDED, ...OTHERS].map((name, place) => [name, lists[place]!]));
        this.sumByName = new Map(ADDED.map((name, place) => [name, this.sums[place]!]));
    }

    /**
     * Returns a column, with NaN for unknown values. The view is valid until the next rows arrive.
     */
    column(name: ClassName): Float32Array {
        return this.byName.get(name)!.subarray(this.span.from, this.span.to);
    }

    /** Returns the sum of a column over the rows from index `from` to before index `to`. */
    sum(name: AddedName, from: number, to: number): number {
        return difference(this.sumByName.get(name)!, this.span, from, to);
    }

    /** Copies `count` rows of `of`, from index `begin` on, to the rows from index `to` on. */
    write(of: ClassColumns, to: number, begin: number, count: number): void {
        ADDED.forEach((name, place) => {
            const [told, list] = [listOf(of, name), this.added[place]!];
            for (let at = 0; at < count; at += 1) list[to + at] = told?.[begin + at] ?? 0;
        });
        OTHERS.forEach((name, place) => {
            const [told, list] = [listOf(of, name), this.others[place]!];
            for (let at = 0; at < count; at += 1) list[to + at] = told?.[begin + at] ?? NaN;
        });
        this.addUp(to, count);
    }

    clear(to: number, count: number): void {
        for (const list of this.added) list.fill(0, to, to + count);
        for (const list of this.others) list.fill(NaN, to, to + count);
    }

    add(other: ClassRows, to: number, count: number): void {
        this.added.forEach((list, place) => {
            const theirs = other.added[place]!;
            for (let at = to; at < to + count; at += 1) list[at]! += theirs[at]!;
        });
    }

    addUp(to: number, count: number): void {
        this.sums.forEach((sums, place) => {
            const list = this.added[place]!;
            for (let at = to; at < to + count; at += 1) sums[at + 1] = sums[at]! + list[at]!;
        });
    }

    shift(from: number, to: number): void {
        for (const list of this.byName.values()) list.copyWithin(0, from, to);
        for (const sums of this.sums) sums.copyWithin(0, from, to + 1);
    }
}
