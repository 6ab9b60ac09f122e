// The dialogs that set the mode of a class, undo an override, and switch the bypass. Each sends the
// revision of the policy that the operator has seen. If two operators decide at the same time, the
// second therefore gets a conflict.
import { gatewayNow } from '../live';
import { visible } from '../visible';
import { useState } from 'preact/hooks';
import { post } from '../client';
import { Decide, type DecisionMeta, useSeen } from '../decide';
import { moment } from '../format';
import type { ClassPolicy, Override, Policy } from '../shapes';
import { overrideText } from '../attention';

/** Returns the revision of the policy as it was when the dialog opened. */
function usePolicySeen(policy: Policy, reload: () => Promise<void>) {
    const { revision, tell } = useSeen(policy.revision);
    return {
        revision: revision ?? policy.revision,
        told: async (): Promise<void> => {
            await reload();
            tell();
        },
    };
}

interface Shared {
    policy: Policy;
    reload: () => Promise<void>;
    onClose: () => void;
}

const SPANS = ['10m', '30m', '1h', '4h', '24h'] as const;
const CHOICES = [
    { id: '10', name: 'Enforce for 10 % of visitors', mode: 'enforce', percent: 10 },
    { id: '50', name: 'Enforce for 50 % of visitors', mode: 'enforce', percent: 50 },
    { id: '100', name: 'Enforce for all', mode: 'enforce', percent: 100 },
    { id: 'observe', name: 'Only observe', mode: 'observe', percent: 100 },
] as const;

/**
 * Returns the option that the dialog selects at first: the next step from the mode in force towards
 * enforcing for all.
 */
const next = (of: ClassPolicy): string =>
    of.mode === 'observe' ? '10' : of.enforce_percent < 50 ? '50' : of.enforce_percent < 100 ? '100' : 'observe';

export function SetClassDialog({ of, policy, reload, onClose }: Shared & { of: ClassPolicy }) {
    const [id, setId] = useState(next(of));
    const seen = usePolicySeen(policy, reload);
    const choice = CHOICES.find(one => one.id === id) ?? CHOICES[0];
    const act = async (meta: DecisionMeta): Promise<void> => {
        await post(
            '/v1/policy/class',
            {},
            { class: of.name, mode: choice.mode, enforce_percent: choice.percent, revision: seen.revision, ...meta },
        );
        await reload();
    };
    const now = policy.classes.find(one => one.name === of.name) ?? of;
    return (
        <Decide
            title={`Mode of class ${of.name}`}
            whys={
                choice.mode === 'enforce'
                    ? ['Start with some visitors', 'The observed decisions look right', 'Orders first during the peak']
                    : ['It refuses too much', 'To look for a fault']
            }
            spans={SPANS}
            verb={choice.mode === 'enforce' ? 'Enforce' : 'Observe'}
            act={act}
            onClose={onClose}
            onConflict={seen.told}
            conflict={<Meanwhile policy={policy} />}
        >
            <fieldset class="choices">
                <legend>
                    In force: <b>{now.mode}</b>
                    {now.mode === 'enforce' && ` for ${now.enforce_percent} % of visitors`}. New mode:
                </legend>
                {CHOICES.map(one => (
                    <label key={one.id} class="checks">
                        <input type="radio" name="mode" checked={one.id === id} onChange={() => setId(one.id)} />{' '}
                        {one.name}
                    </label>
                ))}
            </fieldset>
            <p class="note">
                {choice.percent < 100 && 'Other visitors are only observed. '}
                The mode in the file ({of.file_mode}) applies again when the duration is over, or when an operator
                undoes the override.
            </p>
        </Decide>
    );
}

export function UndoDialog({ of, policy, reload, onClose }: Shared & { of: Override }) {
    const seen = usePolicySeen(policy, reload);
    const act = async (meta: DecisionMeta): Promise<void> => {
        await post('/v1/policy/{number}/undo', { number: of.number }, { revision: seen.revision, ...meta });
        await reload();
    };
    return (
        <Decide
            title="Undo the override"
            whys={['It is no longer needed', 'It did harm', 'It was a mistake']}
            verb="Undo"
            act={act}
            onClose={onClose}
            onConflict={seen.told}
            conflict={<Meanwhile policy={policy} />}
        >
            <p class="hostile">
                {overrideText(of)}, until {moment(Date.parse(of.until), gatewayNow())}: {visible(of.why)}
            </p>
            <p class="note">The mode in the file applies again at once.</p>
        </Decide>
    );
}

export function BypassDialog({ policy, reload, onClose }: Shared) {
    const seen = usePolicySeen(policy, reload);
    const [isOn] = useState(!policy.bypassed);
    const act = async (meta: DecisionMeta): Promise<void> => {
        await post('/v1/bypass', {}, { on: isOn, revision: seen.revision, ...meta });
        await reload();
    };
    return (
        <Decide
            title={isOn ? 'Bypass' : 'End the bypass'}
            whys={
                isOn
                    ? ['To look for a fault', 'It refuses requests that it must not refuse']
                    : ['The fault is found', 'The gateway was not the cause']
            }
            {...(isOn ? { spans: SPANS } : {})}
            verb={isOn ? 'Bypass' : 'End the bypass'}
            act={act}
            onClose={onClose}
            onConflict={seen.told}
            conflict={<Meanwhile policy={policy} />}
        >
            <p>
                {isOn
                    ? 'The gateway makes no decisions: it refuses, holds back and stops no request, and is a plain proxy.'
                    : 'The gateway makes decisions again, by the policy in force.'}
            </p>
            <p class="note">
                {isOn
                    ? 'The bypass ends after the duration below, or when an operator ends it.'
                    : 'You can start another bypass at any time.'}
            </p>
        </Decide>
    );
}

/** The list of the overrides that are in force now, shown after a conflict. */
const Meanwhile = ({ policy }: { policy: Policy }) => (
    <div class="hostile">
        <b>In force now:</b>
        {policy.overrides.length === 0 ? ' only the configuration file.' : null}
        <ul class="sentences">
            {policy.overrides.map(one => (
                <li key={one.number}>
                    {overrideText(one)}, until {moment(Date.parse(one.until), gatewayNow())}: {visible(one.why)}
                </li>
            ))}
        </ul>
    </div>
);
