// All kinds of requests that are told apart, up to ten thousand.
import { visible } from '../visible';
import { useMemo, useState } from 'preact/hooks';
import { post, Refused } from '../client';
import { useDocument } from '../document';
import { Filter } from '../filter';
import { bytes, count, duration, number, perSecond } from '../format';
import { mayNotDecide, name, token } from '../operator';
import { Panel } from '../page';
import { place, replace } from '../place';
import { Problem } from '../problem';
import { href } from '../route';
import type { Kind } from '../shapes';
import { use } from '../signal';
import { type Column, Table } from '../table';
import { ByOne } from './list';

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
        cell: kind => number(kind.slots),
    },
    {
        id: 'rate',
        head: 'In',
        unit: '/s',
        by: kind => kind.requests_per_s,
        cell: kind => perSecond(kind.requests_per_s),
    },
    {
        id: 'lasts',
        head: 'Lasts',
        means: 'How long one holds a slot.',
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
        means: 'Of the time that they took, the part of one client at most.',
        by: kind => kind.by_one,
        cell: kind => <ByOne of={kind} />,
    },
    {
        id: 'transacts',
        head: 'Transact',
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
            ) : (
                !kind.transacts && (
                    <button
                        type="button"
                        class="quiet"
                        disabled={why !== undefined}
                        title={why ?? 'Shows what a rule would do. Nothing is held back yet.'}
                        onClick={() => ask(kind)}
                    >
                        Throttle…
                    </button>
                )
            ),
    },
];

export function Kinds() {
    const { query } = use(place);
    const { value, problem, reload } = useDocument('/v1/kinds', { every: 10_000 });
    const [refused, setRefused] = useState<Refused>();
    const why = mayNotDecide(use(token));
    const ask = (kind: Kind): void => {
        const asked = { pattern: kind.pattern, why: 'asked for in the list of all kinds' };
        post('/v1/kinds/ask', {}, { ...asked, ...(token.value ? {} : { by: name.value || 'an operator' }) })
            .then(of => (location.hash = href('elephants', of.number)))
            .catch((error: unknown) =>
                setRefused(error instanceof Refused ? error : new Refused(0, 'unreachable', String(error))),
            );
    };
    const shownColumns = useMemo(() => columns(ask, why), [why]);
    const wanted = (query.filter ?? '').toLowerCase();
    const shown = useMemo(
        () => value?.kinds.filter(kind => kind.pattern.toLowerCase().includes(wanted)) ?? [],
        [value, wanted],
    );
    return (
        <Panel
            title="All kinds of requests"
            aside={
                <Filter
                    label="Filter kinds"
                    value={query.filter ?? ''}
                    onInput={filter => replace(href('elephants', undefined, { tab: 'kinds', filter }))}
                >
                    {count(shown.length)} of {count(value?.kinds.length)} kinds
                </Filter>
            }
        >
            <Problem of={refused ?? problem} again={() => void reload()} />
            <Table
                caption="As of late: older requests count less"
                columns={shownColumns}
                rows={shown}
                keyOf={kind => kind.pattern}
                order={{ id: 'slots', isDown: true }}
            />
            {value && value.others.requests_per_s > 0 && (
                <p class="note">
                    All others together: {perSecond(value.others.requests_per_s)}, {number(value.others.slots)} slots,{' '}
                    {bytes(value.others.bytes_per_s)}/s.
                </p>
            )}
        </Panel>
    );
}
