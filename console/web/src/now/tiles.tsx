// The state of the gateway in six numbers, of the last minute or of now. Each has a small chart of
// the last 15 minutes.
import { useMemo } from 'preact/hooks';
import { buckets } from '../buckets';
import { count, duration, number, percent } from '../format';
import { rows, tick } from '../live';
import { OUTCOMES } from '../outcome';
import type { Status } from '../shapes';
import { use } from '../signal';
import { shareOf, sums, usefulShare } from '../sums';
import { Tile } from '../tile';

const MINUTE = 60;

export function Tiles({ status }: { status: Status | undefined }) {
    const version = use(tick);
    const tiers = status?.classes.map(one => `${one.name}:${one.tier}`).join();
    const seen = useMemo(() => measured(status), [version, tiers]);
    const { minute, first, useful, wasted, left, courses } = seen;
    const at = (name: 'limit' | 'running' | 'waiting' | 'throttled_waiting' | 'oldest_ms'): number | undefined =>
        rows.gauge(name).at(-1);
    const per = minute.seconds > 0 ? 60 / minute.seconds : 0;
    return (
        <div class="tiles">
            <Tile
                {...FIRST[first.is]}
                value={first.is === 'revenue' ? number(minute.revenue * per) : count(first.count * per)}
                unit="/min"
                window="last 60 s"
                beside={
                    first.is === 'revenue' && first.hasTransactions
                        ? `${count(first.count * per)} transactions /min`
                        : undefined
                }
                course={courses.first}
                isFirst
            />
            <Tile
                name="Useful work"
                value={percent(useful)}
                window="last 60 s"
                means="The part of all service time that went to requests answered in time."
                course={courses.useful}
                most={1}
            />
            <Tile
                name="Wasted work"
                value={percent(wasted)}
                window="last 60 s"
                means="The part of all service time that went to other requests."
                course={courses.wasted}
                most={1}
            />
            <Tile
                name="Slots taken"
                value={`${count(at('running'))} / ${count(at('limit'))}`}
                window="now"
                means="Running requests, and how many may run at once (the concurrency limit)."
                course={courses.running}
                most={at('limit') ?? 1}
            />
            <Tile
                name="Waiting"
                value={count(at('waiting'))}
                unit="requests"
                window="now"
                beside={
                    [
                        at('waiting') ? `oldest ${duration(at('oldest_ms'))}` : '',
                        at('throttled_waiting') ? `${count(at('throttled_waiting'))} more under rules` : '',
                    ]
                        .filter(Boolean)
                        .join(', ') || undefined
                }
                means="Requests that wait in the queue for a slot."
                course={courses.waiting}
            />
            <Tile
                name="Orphaned"
                value={percent(left)}
                window="last 60 s"
                means="The part of the ended requests whose client left before the end of the answer."
                course={courses.left}
                most={0.05}
            />
        </div>
    );
}

const POINT = 15;

/**
 * The three variants of the first tile. It shows the revenue, if there is any. Otherwise it shows
 * the transactions, if a class is of tier `transaction`. Otherwise it shows all answers.
 */
const FIRST = {
    revenue: {
        name: 'Revenue',
        means: 'The revenue of answers, as the configuration sets it for each class (`revenue`), and the number of transactions that were answered in time.',
    },
    transactions: { name: 'Transactions', means: 'Transactions that were answered in time.' },
    answers: { name: 'Served', means: 'Requests that were answered in time. No class has the tier `transaction`.' },
} as const;

function firstOf(status: Status | undefined) {
    const all = rows.classNames();
    const transactions = new Set(status?.classes.filter(one => one.tier === 'transaction').map(one => one.name));
    const hasTransactions = transactions.size > 0;
    const hasRevenue = rows.total.column('revenue').some(revenue => revenue > 0);
    const is: keyof typeof FIRST = hasRevenue ? 'revenue' : hasTransactions ? 'transactions' : 'answers';
    return { is, hasTransactions, names: hasTransactions ? all.filter(name => transactions.has(name)) : all };
}

function measured(status: Status | undefined) {
    const from = rows.since(MINUTE);
    const { is, hasTransactions, names } = firstOf(status);
    const each = names.map(name => sums(rows, rows.class(name), from));
    const minute = sums(rows, rows.total, from);
    const served = names.map(name => rows.class(name)!.column('served'));
    const total = rows.total;
    const columns = {
        useful: total.column('useful_ms'),
        wasted: total.column('wasted_ms'),
        running: rows.gauge('running'),
        waiting: rows.gauge('waiting'),
        orphaned: total.column('orphaned'),
    };
    const ended = OUTCOMES.map(outcome => total.column(outcome.name));
    const useful = usefulShare(minute);
    return {
        minute,
        first: { is, hasTransactions, count: each.reduce((sum, one) => sum + one.outcomes.served, 0) },
        useful,
        wasted: useful === undefined ? undefined : 1 - useful,
        left: shareOf(minute, ['orphaned']),
        courses: {
            first: buckets(rows.length, POINT, at =>
                is === 'revenue'
                    ? (total.column('revenue')[at] ?? 0)
                    : served.reduce((sum, list) => sum + (list[at] ?? 0), 0),
            ),
            useful: buckets(
                rows.length,
                POINT,
                at => columns.useful[at] ?? 0,
                at => (columns.useful[at] ?? 0) + (columns.wasted[at] ?? 0),
            ),
            wasted: buckets(
                rows.length,
                POINT,
                at => columns.wasted[at] ?? 0,
                at => (columns.useful[at] ?? 0) + (columns.wasted[at] ?? 0),
            ),
            running: buckets(
                rows.length,
                POINT,
                at => columns.running[at] ?? 0,
                () => 1,
            ),
            waiting: buckets(
                rows.length,
                POINT,
                at => columns.waiting[at] ?? 0,
                () => 1,
            ),
            left: buckets(
                rows.length,
                POINT,
                at => columns.orphaned[at] ?? 0,
                at => ended.reduce((sum, list) => sum + (list[at] ?? 0), 0),
            ),
        },
    };
}
