// The view "How do the gateways share the slots?": each gateway of the fleet, and the differences
// between them.
import { useDocument } from '../document';
import { History } from '../fleet/history';
import { count, lasting, number } from '../format';
import { Page, Panel } from '../page';
import { Problem } from '../problem';
import type { Fleet as State, FleetGateway } from '../shapes';
import type { Seen } from '../shell';
import { type Column, Table } from '../table';
import { visible } from '../visible';

const COLUMNS: readonly Column<FleetGateway>[] = [
    {
        id: 'name',
        head: 'Gateway',
        isText: true,
        by: one => one.name,
        cell: one => <span class="hostile">{visible(one.name)}</span>,
    },
    { id: 'state', head: 'State', isText: true, by: stateOf, cell: one => stateOf(one) },
    counted('slots', 'Slots'),
    counted('running', 'Running'),
    counted('waiting', 'Waiting'),
    {
        id: 'demand',
        head: 'Demand',
        unit: 'slots',
        means: 'The number of slots that the offered work would keep busy.',
        by: one => one.demand ?? undefined,
        cell: one => number(one.demand ?? undefined),
    },
    {
        ...counted('limit', 'Limit'),
        means: 'The limit of all gateways together, as the file of that gateway states it.',
    },
    {
        id: 'version',
        head: 'Version',
        isText: true,
        cell: one => <span class="hostile">{visible(one.version ?? '–')}</span>,
    },
];

function counted(id: 'slots' | 'running' | 'waiting' | 'limit', head: string): Column<FleetGateway> {
    return { id, head, by: one => one[id] ?? undefined, cell: one => count(one[id] ?? undefined) };
}

function stateOf(one: FleetGateway): string {
    if (one.is_down) return 'has ended';
    if (one.heard_ms === null || one.heard_ms === undefined) return 'not heard';
    return one.is_current ? 'current' : `silent for ${lasting(one.heard_ms)}`;
}

export function Fleet({ status }: Seen) {
    const { value, problem, reload } = useDocument('/v1/fleet', { every: 2000, skip: status?.fleet === undefined });
    return (
        <Page question="How do the gateways share the slots?" json={['/v1/fleet']}>
            {status && status.fleet === undefined && (
                <p class="note">
                    This gateway belongs to no fleet: its configuration has no <code>fleet.name</code>.
                </p>
            )}
            <Problem of={problem} again={() => void reload()} />
            {value && (
                <>
                    <p class="note">{summary(value)}</p>
                    {value.warnings.map(warning => (
                        <p key={warning} class="note bad hostile" role="status">
                            {visible(warning)}
                        </p>
                    ))}
                    <Panel title="Gateways">
                        <Table
                            caption="The gateways of the fleet, as this gateway hears them"
                            columns={COLUMNS}
                            rows={value.gateways}
                            keyOf={one => one.name}
                            order={{ id: 'name', isDown: false }}
                        />
                    </Panel>
                    <History gateways={value.gateways} />
                </>
            )}
        </Page>
    );
}

function summary(fleet: State): string {
    const divides = fleet.allocator
        ? `${visible(fleet.allocator)} divides the slots.`
        : 'This gateway uses its own share of the slots.';
    const connection = fleet.is_connected
        ? 'It is connected to a NATS server.'
        : `It has no connection to a NATS server${fleet.problem ? `: ${visible(fleet.problem)}` : ''}.`;
    const ignored = Object.entries(fleet.rejected).map(([reason, times]) => `${reason.replaceAll('_', ' ')} ${times}`);
    const messages = `Messages: ${count(fleet.sent)} sent, ${count(fleet.received)} received${fleet.messages_per_s ? `, ${number(fleet.messages_per_s)} a second` : ''}, ignored: ${ignored.join(', ') || 'none'}.`;
    return `${visible(fleet.name)} has ${fleet.slots} of ${fleet.limit} slots. Its own share is ${fleet.share}. ${divides} ${connection} ${messages}`;
}
