// The panel of populations: which clients look alike, what their sessions do, and what they got.
import { useDocument } from '../document';
import { count, NONE, number, percent } from '../format';
import { Panel } from '../page';
import { Problem } from '../problem';
import type { Population, Populations as Found } from '../shapes';
import { type Column, Table } from '../table';

const part = (of: number, whole: number) => percent(whole < 0.5 ? undefined : Math.min(1, of / whole));

const columnsOf = ({ populations, others }: Found): readonly Column<Population>[] => {
    const all = [...populations, others];
    const requests = all.reduce((sum, one) => sum + one.requests, 0);
    const service = all.reduce((sum, one) => sum + one.service_s, 0);
    return [
        { id: 'name', head: 'Population', isText: true, cell: one => <code>{one.name || 'others'}</code> },
        { id: 'requests', head: 'Requests', by: one => one.requests, cell: one => part(one.requests, requests) },
        { id: 'slots', head: 'Slot time', by: one => one.service_s, cell: one => part(one.service_s, service) },
        { id: 'given', head: 'Given', by: one => one.started, cell: one => part(one.started, one.requests) },
        { id: 'refused', head: 'Refused', by: one => one.refused, cell: one => part(one.refused, one.requests) },
        { id: 'sessions', head: 'Sessions', by: one => one.sessions, cell: one => count(one.sessions) },
        { id: 'read', head: 'Read on', by: one => one.read_on, cell: one => part(one.read_on, one.sessions) },
        { id: 'lift', head: 'Lift', by: one => one.lift, cell: one => number(one.lift) },
        {
            id: 'level',
            head: 'Level',
            means: '0 is served first, 7 last. An asterisk: it is that of all unknown populations.',
            by: one => one.level,
            cell: one => `${one.level}${one.overridden == null ? (one.agent || one.known || !one.name ? '' : ' *') : ' (set)'}`,
        },
        {
            id: 'browser',
            head: 'Browser',
            isText: true,
            isWide: true,
            cell: one => (
                <span class="hostile" title={one.fields ?? undefined}>
                    {one.agent
                        ? `agent ${one.agent}${one.appointment ? ` (${one.appointment})` : ''}`
                        : one.user_agent === ''
                          ? '(none)'
                          : (one.user_agent ?? NONE)}
                </span>
            ),
        },
    ];
};

export function Populations() {
    const { value, problem, reload } = useDocument('/v1/populations', { every: 10_000 });
    if (!value) return <Problem of={problem} again={() => void reload()} />;
    return (
        <Panel title="Populations">
            <Table
                caption={`First requests of clients that look alike; older ones count less${value.ranks ? '' : '; levels have no effect'}`}
                columns={columnsOf(value)}
                rows={[...value.populations, value.others].filter(one => one.requests >= 0.5 || one.sessions >= 0.5)}
                keyOf={one => one.name}
                order={{ id: 'requests', isDown: true }}
            />
        </Panel>
    );
}
