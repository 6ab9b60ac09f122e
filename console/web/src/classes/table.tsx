// All classes: the requests that came, their outcomes, and how each class is treated.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { count, duration, number, percent, perSecond } from '../format';
import { REFUSED } from '../outcome';
import { href } from '../route';
import type { Rows } from '../rows';
import type { ClassStatus } from '../shapes';
import { inSlices } from '../slices';
import { each, responseTimes, shareOf, sums, type Sums } from '../sums';
import { type Column, Table } from '../table';

interface Line {
    of: ClassStatus;
    sums: Sums;
    p50: number | undefined;
    p99: number | undefined;
}

const all = (of: Sums): number => (of.seconds > 0 ? of.ended / of.seconds : 0);
const refused = (line: Line): number => each(line.sums, REFUSED);
const left = (line: Line): number => each(line.sums, ['orphaned']);

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
        by: line => all(line.sums),
        cell: line => perSecond(all(line.sums)),
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
        means: 'Half of the answers took at most this long, approximately.',
        by: line => line.p50,
        cell: line => duration(line.p50),
    },
    {
        id: 'p99',
        head: 'p99',
        unit: 'about',
        means: '99 of 100 answers took at most this long, approximately.',
        by: line => line.p99,
        cell: line => duration(line.p99),
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
        cell: line => <ModeOf mode={line.of.mode} percent={line.of.percent} />,
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
    rows: Rows;
    version: number;
    seconds: number;
    window: string;
}

export function ClassTable({ classes, rows, version, seconds, window }: Properties) {
    const seen = classes.map(one => `${one.name} ${one.mode} ${one.percent} ${one.waiting}`).join();
    const [lines, setLines] = useState<readonly Line[]>(() => classes.map(of => lineOf(of, rows, rows.length)));
    useEffect(() => {
        let isOld = false;
        void inSlices(linesOf(classes, rows, seconds)).then(lines => isOld || setLines(lines));
        return () => void (isOld = true);
    }, [rows, version, seconds, seen]);
    return useMemo(
        () => (
            <Table
                caption={`By class, ${window}`}
                columns={COLUMNS}
                rows={lines}
                keyOf={line => line.of.name}
                hrefOf={line => href('classes', line.of.name)}
                none="No class matches the filter by its name, tier or mode."
            />
        ),
        [lines, window],
    );
}

/**
 * Computes the lines, one class a step: response times of many classes in a long window take time.
 */
function* linesOf(classes: readonly ClassStatus[], rows: Rows, seconds: number): Generator<void, Line[]> {
    const lines: Line[] = [];
    for (const of of classes) {
        lines.push(lineOf(of, rows, rows.since(seconds)));
        yield;
    }
    return lines;
}

function lineOf(of: ClassStatus, rows: Rows, from: number): Line {
    const seen = rows.class(of.name);
    return { of, sums: sums(rows, seen, from), ...responseTimes(seen ? [seen] : [], from) };
}

export const Tier = ({ of }: { of: string }) => <span class={of === 'transact' ? 'tag strong' : 'tag'}>{of}</span>;

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

const Hurt = ({ of, symbol }: { of: number; symbol: string }) => (
    <span class={of > 0 ? '' : 'why'}>
        {of > 0 && <span aria-hidden="true">{symbol} </span>}
        {perSecond(of)}
    </span>
);
