// The view "What do sessions do, and what are they worth?": the learned graph of sessions, a table
// of the same values, the signals with which sessions begin, and the populations of clients.
import { useDocument } from '../document';
import { count, duration, number, percent } from '../format';
import { Page, Panel } from '../page';
import { Problem } from '../problem';
import { Graph } from '../sessions/graph';
import { visitsOf } from '../sessions/layout';
import { Populations } from '../sessions/populations';
import type { ClassLearned, Sessions as Learned } from '../shapes';
import type { Seen } from '../shell';
import { type Column, Table } from '../table';
import { href } from '../view';

const COLUMNS: readonly Column<ClassLearned>[] = [
    {
        id: 'class',
        head: 'Class',
        isText: true,
        by: one => one.name,
        cell: one => <span class="hostile">{one.name}</span>,
    },
    {
        id: 'visits',
        head: 'Visits',
        unit: 'decaying',
        means: 'Number of visits. Older visits count less.',
        by: visitsOf,
        cell: one => count(visitsOf(one)),
    },
    {
        id: 'begins',
        head: 'Begin here',
        means: 'The part of the visits with which a session began.',
        by: one => one.first_visits / visitsOf(one),
        cell: one => percent(visitsOf(one) > 0 ? one.first_visits / visitsOf(one) : undefined),
    },
    {
        id: 'worth',
        head: 'Worth',
        means: 'Expected revenue of a session from here on.',
        by: one => one.worth,
        cell: one => (
            <>
                {number(one.worth)}
                {one.fixed && <small title="The configuration sets this worth (`fixed_value`)."> fixed</small>}
            </>
        ),
    },
    {
        id: 'before',
        head: 'Before',
        means: 'The worth up to an hour ago.',
        by: one => one.worth_before,
        cell: one => number(one.worth_before),
    },
    {
        id: 'index',
        head: 'Index',
        unit: '/s',
        means: 'Expected revenue per second of service, for sessions that continue here.',
        by: one => one.index_per_s,
        cell: one => number(one.index_per_s),
    },
    { id: 'service', head: 'Service', unit: 'mean', by: one => one.service_ms, cell: one => duration(one.service_ms) },
    {
        id: 'completes',
        head: 'Completes',
        means: 'The part of its requests that are answered in time once they run.',
        by: one => one.completes,
        cell: one => percent(one.completes),
    },
    { id: 'next', head: 'Next', isText: true, isWide: true, cell: one => <Next of={one} /> },
];

export function Sessions({ status }: Seen) {
    const { value, problem, reload } = useDocument('/v1/sessions', { every: 10_000 });
    const transactions = new Set(status?.classes.filter(one => one.tier === 'transaction').map(one => one.name));
    return (
        <Page question="What do sessions do, and what are they worth?" json={['/v1/sessions', '/v1/populations']}>
            <Problem of={problem} again={() => void reload()} />
            {value && (
                <>
                    <p class="note">
                        <b>{count(value.orders)} orders</b> (older ones count less):{' '}
                        {value.ranked_by_worth
                            ? 'enough to rank requests by worth.'
                            : 'not enough yet to rank requests by worth.'}{' '}
                        Sessions remembered now: {count(value.remembered)}, {count(value.proven)} of them proven.
                        Sessions evicted early: {count(value.evicted.fresh)} fresh, {count(value.evicted.proven)}{' '}
                        proven.
                    </p>
                    <Panel
                        title="From class to class"
                        aside={
                            <span class="why">
                                circle: visits (size) and worth (number) · arrow: probability of the next class, from 3
                                % · ring: transactions
                            </span>
                        }
                    >
                        <Graph classes={value.classes} isTransaction={name => transactions.has(name)} />
                    </Panel>
                    <Panel title="Classes">
                        <Table
                            caption="What the gateway has learned; older visits count less"
                            columns={COLUMNS}
                            rows={value.classes}
                            keyOf={one => one.name}
                            hrefOf={one => href('classes', one.name)}
                            order={{ id: 'worth', isDown: true }}
                        />
                    </Panel>
                    <Signals of={value} />
                </>
            )}
            <Populations />
        </Page>
    );
}

function Next({ of }: { of: ClassLearned }) {
    const next = Object.entries(of.next).sort(([, a], [, b]) => b - a);
    const text = next.map(([name, part]) => `${name} ${percent(part)}`).join(', ');
    return (
        <span class="hostile" title={text}>
            {text || '–'}
        </span>
    );
}

type Signal = Learned['signals'][number];
const SIGNALS: readonly Column<Signal>[] = [
    {
        id: 'shown',
        head: 'Signals at the start',
        isText: true,
        by: one => one.shown.join(', '),
        cell: one => <span class="hostile">{one.shown.join(', ') || 'none'}</span>,
    },
    { id: 'sessions', head: 'Sessions', unit: 'decaying', by: one => one.sessions, cell: one => count(one.sessions) },
    {
        id: 'ordered',
        head: 'Ordered',
        unit: 'of these',
        by: one => one.ordered,
        cell: one => `${count(one.ordered)} (${percent(one.sessions > 0 ? one.ordered / one.sessions : undefined)})`,
    },
    {
        id: 'likely',
        head: 'Lift',
        unit: 'against all',
        means: 'How many times as likely as all sessions these are to order.',
        by: one => one.times_as_likely,
        cell: one => `${number(one.times_as_likely)} ×`,
    },
];

const Signals = ({ of }: { of: Learned }) => (
    <Panel title="Signals">
        <Table
            caption="Combinations of signals that sessions begin with; older sessions count less"
            columns={SIGNALS}
            rows={of.signals}
            keyOf={one => one.shown.join('\n')}
            none="No signals: the configuration names none (`identify.signals`), or no session has begun yet."
        />
    </Panel>
);
