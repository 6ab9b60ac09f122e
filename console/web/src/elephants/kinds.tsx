// All routes (kinds of requests) that are distinguished, up to ten thousand.
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
import { href } from '../route';
import type { Kind } from '../shapes';
import { use } from '../signal';
import { type Column, Table } from '../table';
import { ByOne } from './list';

/**
 * Formats slots. The average decays and never reaches zero, so a very small one is shown as zero.
 */
const slots = (kind: Kind): string => number(kind.slots < 0.001 ? 0 : kind.slots);

const columns = (ask: (kind: Kind) => void, why: string | undefined): Column<Kind>[] => [
    {
        id: 'pattern',
        head: 'Requests',
        isText: true,
        isWide: true,
        by: kind => kind.pattern,
        cell: kind => (
            <span class="pattern" title={visible(kind.pattern)}>
                {visible(kind.pattern) || 'all others'}
            </span>
        ),
    },
    {
        id: 'slots',
        head: 'Slots',
        means: 'Slots that they hold, on average.',
        by: kind => kind.slots,
        cell: kind => slots(kind),
    },
    {
        id: 'rate',
        head: 'Rate',
        unit: '/s',
        by: kind => kind.requests_per_s,
        cell: kind => perSecond(kind.requests_per_s),
    },
    {
        id: 'lasts',
        head: 'Service',
        unit: 'mean',
        means: 'How long one request holds a slot, on average.',
        by: kind => kind.lasts_s,
        cell: kind => duration(kind.lasts_s * 1000),
    },
    {
        id: 'bytes',
        head: 'Bytes',
        unit: 'sent /s',
        by: kind => kind.bytes_per_s,
        cell: kind => `${bytes(kind.bytes_per_s)}/s`,
    },
    {
        id: 'one',
        head: 'One client',
        unit: 'at most',
        means: 'The part of their service time that one client caused, at most.',
        by: kind => kind.by_one,
        cell: kind => <ByOne of={kind} />,
    },
    {
        id: 'transacts',
        head: 'Transactions',
        isText: true,
        means: 'Some of them are transactions.',
        by: kind => Number(kind.transacts),
        cell: kind => (kind.transacts ? 'some' : ''),
    },
    {
        id: 'elephant',
        head: 'Elephant',
        by: kind => kind.elephant,
        cell: kind =>
            kind.elephant != null ? (
                <a href={href('elephants', kind.elephant)}>elephant {kind.elephant}</a>
            ) : kind.transacts ? (
                <span class="why">no rule: transactions</span>
            ) : (
                <button
                    type="button"
                    disabled={why !== undefined}
                    title={why ?? 'Shows what a rule would do. No rule begins yet.'}
                    onClick={() => ask(kind)}
                >
                    Throttle…
                </button>
            ),
    },
];

export function Kinds() {
    const { query } = use(place);
    const { value, problem, reload } = useDocument('/v1/kinds', { every: 10_000 });
    const [asking, setAsking] = useState<Kind>();
    const why = mayNotDecide(use(token));
    const shownColumns = useMemo(() => columns(setAsking, why), [why]);
    const wanted = (query.filter ?? '').toLowerCase();
    const shown = useMemo(
        () => value?.kinds.filter(kind => kind.pattern.toLowerCase().includes(wanted)) ?? [],
        [value, wanted],
    );
    return (
        <Panel
            title="All routes"
            aside={
                <Filter
                    label="Filter routes"
                    value={query.filter ?? ''}
                    onInput={filter => replace(href('elephants', undefined, { tab: 'kinds', filter }))}
                >
                    {count(shown.length)} of {count(value?.kinds.length)} routes
                </Filter>
            }
        >
            <Problem of={problem} again={() => void reload()} />
            <Table
                caption="Recent load by route; older requests count less"
                columns={shownColumns}
                rows={shown}
                keyOf={kind => kind.pattern}
                order={{ id: 'slots', isDown: true }}
            />
            {asking && (
                <Decide
                    title={`Throttle: ${visible(asking.pattern)}`}
                    whys={['It overloads the site and can wait', 'Its owners have asked for it']}
                    verb="Show what a rule would do"
                    act={async word => {
                        const of = await post('/v1/kinds/ask', {}, { ...word, pattern: asking.pattern });
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
