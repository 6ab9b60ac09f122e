// The table of the classes: the mode in force, the mode in the configuration file, and the override
// with its author and its end. Buttons change the mode.
import { gatewayNow } from '../live';
import { visible } from '../visible';
import { useState } from 'preact/hooks';
import { ModeOf, Tier } from '../classes/table';
import { lasting, number } from '../format';
import { mayNotDecide, token } from '../operator';
import type { ClassPolicy, Override, Policy } from '../shapes';
import { use } from '../signal';
import { type Column, Table } from '../table';
import { href } from '../view';
import { SetClassDialog, UndoDialog } from './dialogs';

type Doing = { set: ClassPolicy } | { undo: Override };

export function ClassPolicies({ policy, reload }: { policy: Policy; reload: () => Promise<void> }) {
    const [doing, setDoing] = useState<Doing>();
    const why = mayNotDecide(use(token));
    const overrideOf = (one: ClassPolicy): Override | undefined =>
        policy.overrides.find(other => other.number === one.overridden);
    const columns: readonly Column<ClassPolicy>[] = [
        {
            id: 'class',
            head: 'Class',
            isText: true,
            by: one => one.name,
            cell: one => <span class="hostile">{one.name}</span>,
        },
        { id: 'tier', head: 'Tier', isText: true, by: one => one.tier, cell: one => <Tier of={one.tier} /> },
        { id: 'matches', head: 'Matches', isText: true, isWide: true, cell: one => <Matches of={one.matches} /> },
        {
            id: 'utility',
            head: 'Utility',
            unit: 'per request',
            by: one => one.utility,
            cell: one => number(one.utility),
        },
        {
            id: 'mode',
            head: 'Mode in force',
            isText: true,
            by: one => one.mode,
            cell: one => <ModeOf mode={one.mode} percent={one.enforce_percent} />,
        },
        {
            id: 'file',
            head: 'Mode in the file',
            isText: true,
            by: one => one.file_mode,
            cell: one => <ModeOf mode={one.file_mode} percent={one.file_enforce_percent} />,
        },
        {
            id: 'override',
            head: 'Override',
            isText: true,
            by: one => overrideOf(one)?.by,
            cell: one => <OverrideOf of={overrideOf(one)} />,
        },
        {
            id: 'do',
            head: 'Decision',
            isText: true,
            cell: one => {
                const override = overrideOf(one);
                return (
                    <span class="row doings">
                        <button
                            type="button"
                            disabled={why !== undefined}
                            title={why}
                            onClick={() => setDoing({ set: one })}
                        >
                            {one.mode === 'observe' ? 'Enforce…' : one.enforce_percent < 100 ? 'Raise…' : 'Change…'}
                            <span class="unseen"> class {one.name}</span>
                        </button>
                        {override && (
                            <button
                                type="button"
                                disabled={why !== undefined}
                                title={why}
                                onClick={() => setDoing({ undo: override })}
                            >
                                Undo…<span class="unseen"> the override of class {one.name}</span>
                            </button>
                        )}
                    </span>
                );
            },
        },
    ];
    return (
        <>
            <Table
                caption="Classes, in the order of the configuration file"
                columns={columns}
                rows={policy.classes}
                keyOf={one => one.name}
                hrefOf={one => href('classes', one.name)}
            />
            {why && <p class="note">{why}</p>}
            {doing && 'set' in doing && (
                <SetClassDialog of={doing.set} {...{ policy, reload }} onClose={() => setDoing(undefined)} />
            )}
            {doing && 'undo' in doing && (
                <UndoDialog of={doing.undo} {...{ policy, reload }} onClose={() => setDoing(undefined)} />
            )}
        </>
    );
}

const Matches = ({ of }: { of: readonly string[] }) => (
    <span class="pattern" title={of.join('\n')}>
        {of.length > 0 ? of.join(', ') : 'requests that match no other class'}
    </span>
);

const OverrideOf = ({ of }: { of: Override | undefined }) =>
    of ? (
        <span class="hostile" title={visible(of.why)}>
            {visible(of.by)}, {lasting(Date.parse(of.until) - gatewayNow())} left{' '}
            <small>{visible(of.why.length > 24 ? `${of.why.slice(0, 23)}…` : of.why)}</small>
        </span>
    ) : (
        <span class="why">none</span>
    );
