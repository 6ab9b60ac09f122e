// The table of all routes that the gateway counts separately, up to ten thousand.
import { visible } from '../visible';
import { useMemo, useState } from 'preact/hooks';
import { post } from '../client';
import { Decide } from '../decide';
import { useDocument } from '../document';
import { Filter } from '../filter';
import { bytes, count, duration, number, perSecond } from '../format';
import { mayNotDecide, token } from '../operator';
import { Panel } from '../page';
import { place, replace } from '../place';
import { Problem } from '../problem';
import type { Route } from '../shapes';
import { use } from '../signal';
import { type Column, Table } from '../table';
import { href } from '../view';
import { ByOne } from './list';

/**
 * Formats a number of slots. The weighted average decays and never reaches zero, so a very small
 * average is shown as zero.
 */
const slots = (route: Route): string => number(route.slots < 0.001 ? 0 : route.slots);

const columns = (ask: (route: Route) => void, why: string | undefined): Column<Route>[] => [
    {
        id: 'pattern',
        head: 'Requests',
        isText: true,
        isWide: true,
        by: route => route.pattern,
        cell: route => (
            <span class="pattern" title={visible(route.pattern)}>
                {visible(route.pattern) || 'all others'}
            </span>
        ),
    },
    {
        id: 'slots',
        head: 'Slots',
        means: 'Slots that they hold, on average.',
        by: route => route.slots,
        cell: route => slots(route),
    },
    {
        id: 'rate',
        head: 'Rate',
        unit: '/s',
        by: route => route.requests_per_s,
        cell: route => perSecond(route.requests_per_s),
    },
    {
        id: 'lasts',
        head: 'Service',
        unit: 'mean',
        means: 'How long one request holds a slot, on average.',
        by: route => route.lasts_s,
        cell: route => duration(route.lasts_s * 1000),
    },
    {
        id: 'bytes',
        head: 'Bytes',
        unit: 'sent /s',
        by: route => route.bytes_per_s,
        cell: route => `${bytes(route.bytes_per_s)}/s`,
    },
    {
        id: 'one',
        head: 'One client',
        unit: 'at most',
        means: 'The part of their service time that one client caused, at most.',
        by: route => route.by_one,
        cell: route => <ByOne of={route} />,
    },
    {
        id: 'transacts',
        head: 'Transactions',
        isText: true,
        means: 'Some of them are transactions.',
        by: route => Number(route.transacts),
        cell: route => (route.transacts ? 'some' : ''),
    },
    {
        id: 'elephant',
        head: 'Elephant',
        by: route => route.elephant,
        cell: route =>
            route.elephant != null ? (
                <a href={href('elephants', route.elephant)}>elephant {route.elephant}</a>
            ) : route.transacts ? (
                <span class="why">no rule: transactions</span>
            ) : (
                <button
                    type="button"
                    disabled={why !== undefined}
                    title={why ?? 'Shows what a rule would do. No rule begins yet.'}
                    onClick={() => ask(route)}
                >
                    Throttle…
                </button>
            ),
    },
];

export function Routes() {
    const { query } = use(place);
    const { value, problem, reload } = useDocument('/v1/routes', { every: 10_000 });
    const [asking, setAsking] = useState<Route>();
    const why = mayNotDecide(use(token));
    const shownColumns = useMemo(() => columns(setAsking, why), [why]);
    const wanted = (query.filter ?? '').toLowerCase();
    const shown = useMemo(
        () => value?.routes.filter(route => route.pattern.toLowerCase().includes(wanted)) ?? [],
        [value, wanted],
    );
    return (
        <Panel
            title="All routes"
            aside={
                <Filter
                    label="Filter routes"
                    value={query.filter ?? ''}
                    onInput={filter => replace(href('elephants', undefined, { tab: 'routes', filter }))}
                >
                    {count(shown.length)} of {count(value?.routes.length)} routes
                </Filter>
            }
        >
            <Problem of={problem} again={() => void reload()} />
            <Table
                caption="Recent load by route; older requests count less"
                columns={shownColumns}
                rows={shown}
                keyOf={route => route.pattern}
                order={{ id: 'slots', isDown: true }}
            />
            {asking && (
                <Decide
                    title={`Throttle: ${visible(asking.pattern)}`}
                    whys={['It overloads the site and can wait', 'Its owners have asked for it']}
                    verb="Show what a rule would do"
                    act={async meta => {
                        const of = await post('/v1/routes/ask', {}, { ...meta, pattern: asking.pattern });
                        location.hash = href('elephants', of.number);
                    }}
                    onClose={() => setAsking(undefined)}
                >
                    <p>
                        No rule begins yet. The route becomes an elephant, for which you can try or approve a rule. If
                        nobody does so within an hour, bywash forgets it.
                    </p>
                </Decide>
            )}
            {value && value.others.requests_per_s > 0 && (
                <p class="note">
                    All other requests together: {perSecond(value.others.requests_per_s)}, {slots(value.others)} slots,{' '}
                    {bytes(value.others.bytes_per_s)}/s.
                </p>
            )}
        </Panel>
    );
}
