// Shows the cells of a laboratory result as a table, and their useful and wasted work as bars.
import { duration, number, percent } from '../format';
import { type Column, Table } from '../table';
import { nameOf } from './compare';
import type { Cell, Result } from './result';

const part = (id: keyof Cell, head: string, means: string): Column<Cell> => ({
    id,
    head,
    means,
    by: cell => cell[id],
    cell: cell => percent(cell[id] as number | undefined),
});

const COLUMNS: readonly Column<Cell>[] = [
    {
        id: 'policy',
        head: 'Policy',
        isText: true,
        isWide: true,
        by: cell => cell.policy,
        cell: cell => <span class="hostile">{cell.policy}</span>,
    },
    {
        id: 'rho',
        head: 'Load',
        unit: 'ρ',
        means: 'Offered load, as a multiple of the capacity.',
        by: cell => cell.rho,
        cell: cell => number(cell.rho),
    },
    {
        id: 'closes',
        head: 'Closes',
        isText: true,
        means: 'Whether departures of clients reach the server side (visible), or a hop hides them (hidden).',
        by: cell => cell.closes,
        cell: cell => <span class="hostile">{cell.closes}</span>,
    },
    part('useful', 'Useful work', 'Service time of requests answered in time, as a share of what was possible.'),
    part('wasted', 'Wasted work', 'Service time of all other requests, as a share of what was possible.'),
    part('revenue', 'Revenue', 'Confirmed orders, as a share of those that were possible.'),
    part(
        'completed',
        'Completed',
        'Answered while the client waited, as a share of all requests that visitors meant to send.',
    ),
    part('timedOut', 'Timed out', 'The client gave up. A gateway counts such a request as orphaned.'),
    part('dropped', 'Dropped', 'Refused. A gateway counts such a request as shed, throttled or expired.'),
    part('terminated', 'Terminated', 'Stopped while it ran.'),
    {
        id: 'p50',
        head: 'p50',
        means: 'Half of all answers took at most this long.',
        by: cell => cell.p50,
        cell: cell => duration(cell.p50),
    },
    {
        id: 'p99',
        head: 'p99',
        means: '99 of 100 answers took at most this long.',
        by: cell => cell.p99,
        cell: cell => duration(cell.p99),
    },
];

export const Cells = ({ of }: { of: Result }) => (
    <>
        {of.invalid && <p class="problem">These figures must not be used: {of.invalid}</p>}
        <Table
            caption={`Scenario ${of.scenario}, ${of.seeds} seeds, the whole run`}
            columns={COLUMNS}
            rows={of.cells}
            keyOf={nameOf}
            none="The result has no cells."
        />
    </>
);

export function Bars({ of }: { of: Result }) {
    const cells = of.cells.filter(cell => cell.useful !== undefined);
    const most = Math.max(1, ...cells.map(cell => (cell.useful ?? 0) + (cell.wasted ?? 0)));
    return (
        <div
            class="bars"
            role="img"
            aria-label={`Useful and wasted work by policy: ${cells.map(cell => `${nameOf(cell)}: ${percent(cell.useful)} useful, ${percent(cell.wasted)} wasted`).join('; ')}`}
        >
            {cells.map(cell => (
                <div key={nameOf(cell)} class="bars-of">
                    <span class="hostile">{nameOf(cell)}</span>
                    <span class="bar-of">
                        <span class="useful" style={{ width: `${((cell.useful ?? 0) / most) * 100}%` }} />
                        <span
                            class="wasted"
                            style={{
                                left: `${((cell.useful ?? 0) / most) * 100}%`,
                                width: `${((cell.wasted ?? 0) / most) * 100}%`,
                            }}
                        />
                    </span>
                    <span>
                        <b>{percent(cell.useful)}</b> <small>useful, {percent(cell.wasted)} wasted</small>
                    </span>
                </div>
            ))}
        </div>
    );
}
