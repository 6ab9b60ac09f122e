// Two results of the laboratory side by side, with their differences: in percentage points, and as
// a fraction of the first result.
import { percent } from '../format';
import { type Column, Table } from '../table';
import { difference, type Pair, pairs } from './compare';
import type { Cell, Result } from './result';

type Figure = 'useful' | 'wasted' | 'revenue' | 'completed';
const FIGURES: readonly [Figure, string][] = [
    ['useful', 'Useful work'],
    ['wasted', 'Wasted work'],
    ['revenue', 'Revenue'],
    ['completed', 'Completed'],
];

export function Beside({ left, right, names }: { left: Result; right: Result; names: readonly [string, string] }) {
    const columns: Column<Pair>[] = [
        {
            id: 'name',
            head: 'Policy, load, closes',
            isText: true,
            isWide: true,
            by: pair => pair.name,
            cell: pair => <span class="hostile">{pair.name}</span>,
        },
        ...FIGURES.map(([figure, head]): Column<Pair> => ({
            id: figure,
            head,
            unit: 'first → second',
            by: pair => difference(pair.left?.[figure], pair.right?.[figure])?.absolute,
            cell: pair => <Change left={pair.left} right={pair.right} figure={figure} />,
        })),
    ];
    return (
        <Table
            caption={`${names[0]} (first) and ${names[1]} (second); differences in percentage points, and relative to the first`}
            columns={columns}
            rows={pairs(left, right)}
            keyOf={pair => pair.name}
        />
    );
}

function Change({ left, right, figure }: { left: Cell | undefined; right: Cell | undefined; figure: Figure }) {
    const [a, b] = [left?.[figure], right?.[figure]];
    const of = difference(a, b);
    const sign = (value: number): string => (value < 0 ? '−' : '+');
    return (
        <span class="change">
            <span>
                {percent(a)} → {percent(b)}
            </span>
            <small>
                {of ? `${sign(of.absolute)}${Math.abs(of.absolute * 100).toFixed(1)} points` : 'only in one result'}
                {of?.relative !== undefined && `, ${sign(of.relative)}${percent(Math.abs(of.relative))}`}
            </small>
        </span>
    );
}
