// The table of work by class, and of the requests that were refused, stopped or orphaned.
import { useMemo } from 'preact/hooks';
import { count, duration, percent } from '../format';
import type { Rows } from '../rows';
import type { OutcomeName } from '../shapes';
import { sums, type Sums, usefulShare } from '../sums';
import { type Column, Table } from '../table';
import { href } from '../view';
import { savedBy, type Saved } from './estimate';

interface Line {
    name: string;
    sums: Sums;
    saved: Saved;
}

const outcome = (name: OutcomeName, means: string): Column<Line> => ({
    id: name,
    head: name,
    means,
    by: line => line.sums.outcomes[name],
    cell: line => <span class={line.sums.outcomes[name] ? '' : 'why'}>{count(line.sums.outcomes[name])}</span>,
});

const COLUMNS: readonly Column<Line>[] = [
    {
        id: 'class',
        head: 'Class',
        isText: true,
        by: line => line.name,
        cell: line => <span class="hostile">{line.name}</span>,
    },
    {
        id: 'useful',
        head: 'Useful',
        unit: 'service',
        by: line => line.sums.usefulMs,
        cell: line => duration(line.sums.usefulMs),
    },
    {
        id: 'wasted',
        head: 'Wasted',
        unit: 'service',
        by: line => line.sums.wastedMs,
        cell: line => duration(line.sums.wastedMs),
    },
    {
        id: 'share',
        head: 'Wasted',
        unit: 'of work',
        by: line => wastedShare(line.sums),
        cell: line => percent(wastedShare(line.sums)),
    },
    outcome('orphaned', 'Requests whose client left.'),
    {
        id: 'left_waiting',
        head: 'of these',
        unit: 'never ran',
        means: 'Orphaned requests that never got a slot.',
        by: line => line.sums.leftWaiting,
        cell: line => count(line.sums.leftWaiting),
    },
    outcome('expired', 'Requests that were refused after they had waited as long as a request may.'),
    outcome('shed', 'Requests that were refused before they ran.'),
    outcome('throttled', 'Requests that were refused because of a rule.'),
    outcome('terminated', 'Requests that were stopped while they ran.'),
    {
        id: 'saved',
        head: 'Saved',
        unit: 'estimated',
        by: line => line.saved.ms,
        cell: line => duration(line.saved.ms),
    },
];

function wastedShare(of: Sums): number | undefined {
    const useful = usefulShare(of);
    return useful === undefined ? undefined : 1 - useful;
}

export function SavedTable({
    rows,
    version,
    from,
    window,
}: {
    rows: Rows;
    version: number;
    from: number;
    window: string;
}) {
    const lines = useMemo(
        () =>
            rows.classNames().map((name): Line => {
                const of = rows.class(name)!;
                return { name, sums: sums(rows, of, from), saved: savedBy(rows, of, from) };
            }),
        [rows, version, from],
    );
    return (
        <Table
            caption={`Work, and requests by outcome, ${window}`}
            columns={COLUMNS}
            rows={lines}
            keyOf={line => line.name}
            hrefOf={line => href('classes', line.name)}
            order={{ id: 'wasted', isDown: true }}
        />
    );
}
