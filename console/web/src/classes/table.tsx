// The table of all classes: the requests that came, their outcomes, and the mode of each class.
import { useMemo } from 'preact/hooks';
import { useDocument } from '../document';
import { count, duration, number, percent, perSecond } from '../format';
import { REFUSED } from '../outcome';
import { Problem } from '../problem';
import { OUTCOME_NAMES } from '../rows';
import type { ClassStatus, WindowSums } from '../shapes';
import { type ClassSums, classSums, each, realLength, shareOf, WINDOW_TEXT, type WindowName } from '../sums';
import { type Column, Table } from '../table';
import { href } from '../view';

interface Line {
    of: ClassStatus;
    sums: ClassSums;
}

const ended = (line: Line): number | undefined => each(line.sums, OUTCOME_NAMES);
const refused = (line: Line): number | undefined => each(line.sums, REFUSED);
const left = (line: Line): number | undefined => each(line.sums, ['orphaned']);

const COLUMNS: readonly Column<Line>[] = [
    {
        id: 'class',
        head: 'Class',
        isText: true,
        by: line => line.of.name,
        cell: line => <span class="hostile">{line.of.name}</span>,
    },
    { id: 'tier', head: 'Tier', isText: true, by: line => line.of.tier, cell: line => <Tier of={line.of.tier} /> },
    {
        id: 'in',
        head: 'Ended',
        unit: '/s',
        means: 'Requests that ended, per second.',
        by: ended,
        cell: line => perSecond(ended(line)),
    },
    {
        id: 'served',
        head: 'Served',
        unit: 'of ended',
        means: 'The part of the ended requests that were answered in time.',
        by: line => shareOf(line.sums, ['served']),
        cell: line => <InTime of={shareOf(line.sums, ['served'])} />,
    },
    {
        id: 'p50',
        head: 'p50',
        unit: 'about',
        means: 'Half of the answers took at most this long, to one part in 16.',
        by: line => line.sums.p50,
        cell: line => duration(line.sums.p50),
    },
    {
        id: 'p99',
        head: 'p99',
        unit: 'about',
        means: '99 of 100 answers took at most this long, to one part in 16.',
        by: line => line.sums.p99,
        cell: line => duration(line.sums.p99),
    },
    { id: 'waiting', head: 'Waiting', unit: 'now', by: line => line.of.waiting, cell: line => count(line.of.waiting) },
    {
        id: 'refused',
        head: 'Refused',
        unit: '/s',
        means: 'Requests that were shed, expired or throttled, per second.',
        by: refused,
        cell: line => <Hurt of={refused(line)} symbol="▲" />,
    },
    {
        id: 'left',
        head: 'Orphaned',
        unit: '/s',
        means: 'Requests whose client left, per second.',
        by: left,
        cell: line => <Hurt of={left(line)} symbol="○" />,
    },
    {
        id: 'mode',
        head: 'Mode',
        isText: true,
        by: line => line.of.mode,
        cell: line => <ModeOf mode={line.of.mode} percent={line.of.enforce_percent} />,
    },
    {
        id: 'utility',
        head: 'Utility',
        unit: 'per request',
        means: 'The configured worth of one request.',
        by: line => line.of.utility,
        cell: line => number(line.of.utility),
    },
];

interface Properties {
    classes: readonly ClassStatus[];
    window: WindowName;
}

export function ClassTable({ classes, window }: Properties) {
    const read = useDocument('/v1/history', { query: { window }, every: window === '24h' ? 60_000 : 1000 });
    // With `window`, the document has sums.
    const value = read.value as WindowSums | undefined;
    const seen = classes.map(one => `${one.name} ${one.mode} ${one.enforce_percent} ${one.waiting}`).join();
    const lines = useMemo(() => classes.map(of => ({ of, sums: classSums(value, of.name) })), [value, seen]);
    const caption = `By class, ${WINDOW_TEXT[window]}${realLength(window, value?.length_s)}`;
    const table = useMemo(
        () => (
            <Table
                caption={caption}
                columns={COLUMNS}
                rows={lines}
                keyOf={line => line.of.name}
                hrefOf={line => href('classes', line.of.name)}
                none="No class matches the filter by its name, tier or mode."
            />
        ),
        [lines, caption],
    );
    return (
        <>
            <Problem of={read.problem} again={() => void read.reload()} />
            {table}
        </>
    );
}

export const Tier = ({ of }: { of: string }) => <span class={of === 'transaction' ? 'tag strong' : 'tag'}>{of}</span>;

export const ModeOf = ({ mode, percent }: { mode: string; percent: number }) => (
    <span class="mode-of">
        {mode}
        {mode === 'enforce' && percent < 100 && (
            <small title="Enforced for this part of the visitors. The others are only observed.">
                {' '}
                {percent}
                {'\u2009'}%
            </small>
        )}
    </span>
);

const InTime = ({ of }: { of: number | undefined }) => (
    <span class={of !== undefined && of < 0.9 ? 'worse' : ''}>
        {of !== undefined && of < 0.9 && <span aria-hidden="true">▼ </span>}
        {percent(of)}
    </span>
);

const Hurt = ({ of, symbol }: { of: number | undefined; symbol: string }) => (
    <span class={of ? '' : 'why'}>
        {!!of && <span aria-hidden="true">{symbol} </span>}
        {perSecond(of)}
    </span>
);
