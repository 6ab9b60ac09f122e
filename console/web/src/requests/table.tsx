// The table of requests that have ended, one a line. Each line is a link to the details of its
// request.
import { visible } from '../visible';
import { duration, exactly } from '../format';
import { outcomeOf } from '../outcome';
import { ReasonOf, words } from '../reason';
import type { Request } from '../shapes';
import { type Column, Table } from '../table';
import { href } from '../view';

const COLUMNS: readonly Column<Request>[] = [
    { id: 'time', head: 'Ended', isText: true, cell: one => exactly(one.time) },
    { id: 'outcome', head: 'Outcome', isText: true, cell: one => <OutcomeOf name={one.outcome} fault={one.fault} /> },
    { id: 'decision', head: 'Decision', isText: true, cell: one => decisionText(one) },
    { id: 'reason', head: 'Reason', isText: true, cell: one => <ReasonOf name={one.reason} /> },
    { id: 'class', head: 'Class', isText: true, cell: one => <span class="hostile">{one.class ?? '–'}</span> },
    {
        id: 'waited',
        head: 'Waited',
        cell: one => duration(one.queue_wait_us === undefined ? undefined : one.queue_wait_us / 1000),
    },
    { id: 'ran', head: 'Ran', cell: one => duration(one.service_us === undefined ? undefined : one.service_us / 1000) },
    { id: 'status', head: 'Status', cell: one => one.status ?? '–' },
    { id: 'target', head: 'Request', isText: true, isWide: true, cell: one => <Target of={one} /> },
];

export function RequestTable({ caption, requests }: { caption: string; requests: readonly Request[] }) {
    return (
        <Table
            caption={caption}
            columns={COLUMNS}
            rows={requests}
            keyOf={one => one.request ?? `${one.time} ${one.client}`}
            hrefOf={one => href('why', one.request ?? '')}
            none="No remembered request matches."
        />
    );
}

/**
 * Returns the decision about a request in words. For a request that was only observed, it is the
 * decision that would have been carried out.
 */
export const decisionText = (one: Request): string =>
    one.decision == null
        ? '–'
        : one.mode === 'observe' && one.decision !== 'run'
          ? `would ${one.decision}`
          : one.decision;

export const OutcomeOf = ({ name, fault }: { name: string | undefined; fault?: string | null | undefined }) => {
    const of = outcomeOf(name ?? '');
    if (!of) {
        const known = visible(fault ?? name ?? '–');
        return (
            <span class="tag bad" title={known}>
                {fault ? `malformed: ${words(known)}` : words(known)}
            </span>
        );
    }
    return (
        <span class={`outcome ${of.name}`} title={of.means}>
            <span aria-hidden="true">{of.symbol}</span> {of.name}
        </span>
    );
};

export const Target = ({ of }: { of: Request }) => (
    <span class="pattern" title={visible(`${of.method ?? ''} ${of.target ?? ''}`)}>
        {visible(`${of.method ?? ''} ${of.target ?? ''}`)}
    </span>
);
