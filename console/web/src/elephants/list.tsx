// The table of the elephants, sorted by their share, the largest first.
import { gatewayNow } from '../live';
import { visible } from '../visible';
import { percent, perSecond } from '../format';
import type { Elephant, Route } from '../shapes';
import { type Column, Table } from '../table';
import { href } from '../view';
import { Interval } from './interval';
import { amount, intervalText, isCounted, kindOf, names, ofCapacity, stateText, stateWord } from './words';

export function List({
    elephants,
    seen,
    isLooking,
}: {
    elephants: readonly Elephant[];
    seen: number;
    isLooking: boolean;
}) {
    const none = !isLooking
        ? 'None: bywash does not search for elephants, because the configuration names no resource.'
        : seen < 120
          ? 'None yet. bywash finds an elephant of slots or bytes within seconds, and one of a measured resource within minutes.'
          : 'None: no route causes much of the load.';
    return (
        <Table
            caption="Routes that use much of a resource; older requests count less"
            columns={columns(elephants)}
            rows={elephants}
            keyOf={one => one.number}
            hrefOf={one => href('elephants', one.number)}
            order={{ id: 'share', isDown: true }}
            none={none}
        />
    );
}

/** Returns the columns of the table. Costs of the same resource are drawn on one scale. */
function columns(all: readonly Elephant[]): Column<Elephant>[] {
    const most = new Map<string, number>();
    for (const { found } of all)
        if (found) most.set(found.resource, Math.max(most.get(found.resource) ?? 0, found.interval[1] ?? 0));
    return [
        {
            id: 'pattern',
            head: 'Requests',
            isText: true,
            isWide: true,
            by: one => one.pattern,
            cell: one => <Names of={one} />,
        },
        {
            id: 'resource',
            head: 'Resource',
            isText: true,
            by: one => one.found?.resource,
            cell: one => one.found?.resource ?? '–',
        },
        {
            id: 'cost',
            head: 'Cost',
            unit: 'each, 95 %',
            means: 'What one request uses of the resource, with the 95 % interval.',
            by: one => one.found?.cost,
            cell: ({ found }) =>
                found ? (
                    <span class="cost">
                        <span>{amount(found, found.cost)}</span>
                        <small>{intervalText(found)}</small>
                        {!isCounted(found) && (
                            <Interval
                                low={found.interval[0] ?? 0}
                                at={found.cost}
                                high={found.interval[1] ?? 0}
                                most={most.get(found.resource) ?? 0}
                            />
                        )}
                    </span>
                ) : (
                    '–'
                ),
        },
        { id: 'rate', head: 'Rate', unit: '/s', by: one => one.found?.rate, cell: one => perSecond(one.found?.rate) },
        {
            id: 'share',
            head: 'Share',
            unit: 'of use',
            means: 'The part of the use of the resource that these requests cause.',
            by: one => one.found?.share ?? -1,
            cell: ({ found }) =>
                found ? <Share of={found.share} title={`${percent(ofCapacity(found))} of the capacity`} /> : '–',
        },
        {
            id: 'one',
            head: 'One client',
            unit: 'at most',
            means: 'The part of their service time that one client caused, at most.',
            by: one => one.found?.by_one,
            cell: ({ found }) => (found ? <ByOne of={found} /> : '–'),
        },
        { id: 'state', head: 'State', isText: true, by: stateWord, cell: one => <State of={one} /> },
    ];
}

export const Names = ({ of }: { of: Elephant }) => {
    const [first, ...others] = names(of);
    return (
        <span class="pattern" title={names(of).map(visible).join('\n')}>
            {visible(first ?? '')}
            {of.found?.provisional && <small> provisional</small>}
            {others.length > 0 && <small> or {others.length} more (any of these)</small>}
        </span>
    );
};

/**
 * Shows the maximum fraction of a route's service time that one client can have caused. Adds the
 * client's address if the client certainly caused at least a tenth.
 */
export const ByOne = ({ of }: { of: Pick<Route, 'by_one' | 'one_client'> }) => (
    <>
        {percent(of.by_one)}
        {of.one_client && <small> {of.one_client.address}</small>}
    </>
);

export const Share = ({ of, title }: { of: number; title?: string }) => (
    <span class="share" title={title}>
        {percent(of)}
        <span class="bar-of" aria-hidden="true">
            <span style={{ width: `${Math.min(100, of * 100)}%` }} />
        </span>
    </span>
);

const SYMBOLS = { proposed: '◆', held: '▼', trial: '▽', rejected: '✕' } as const;
const KINDS = { proposed: 'asks', held: 'strong', trial: 'strong', rejected: '' } as const;

export const State = ({ of }: { of: Elephant }) => (
    <span class={`tag ${KINDS[kindOf(of)]}`} title={stateText(of, gatewayNow())}>
        <span aria-hidden="true">{SYMBOLS[kindOf(of)]}</span> {stateWord(of)}
    </span>
);
