// The dialogs that set the mode of a class, undo an override, and switch the bypass. Each sends the
// revision of the policy that the operator has seen, so that the second of two operators gets a
// conflict.
import { gatewayNow } from '../live';
import { visible } from '../visible';
import { useState } from 'preact/hooks';
import { post } from '../client';
import { Decide, type SaidWord, useSeen } from '../decide';
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

/** Returns the next step from the mode in force. */
const next = (of: ClassPolicy): string =>
    of.mode === 'observe' ? '10' : of.percent < 50 ? '50' : of.percent < 100 ? '100' : 'observe';

export function SetClassDialog({ of, policy, reload, onClose }: Shared & { of: ClassPolicy }) {
    const [id, setId] = useState(next(of));
    const seen = usePolicySeen(policy, reload);
    const choice = CHOICES.find(one => one.id === id) ?? CHOICES[0];
    const act = async (word: SaidWord): Promise<void> => {
        await post(
            '/v1/policy/class',
            {},
            { class: of.name, mode: choice.mode, percent: choice.percent, revision: seen.revision, ...word },
        );
        await reload();
    };
    const now = policy.classes.find(one => one.name === of.name) ?? of;
    return (
        <Decide
            title={`Class ${of.name}`}
            whys={
                choice.mode === 'enforce'
                    ? ['First some, then all', 'The shadow looks right', 'Orders first while the crowd is here']
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
                    {now.mode === 'enforce' && ` for ${now.percent} % of visitors`}. From now on:
                </legend>
                {CHOICES.map(one => (
                    <label key={one.id} class="checks">
                        <input type="radio" name="mode" checked={one.id === id} onChange={() => setId(one.id)} />{' '}
                        {one.name}
                    </label>
                ))}
            </fieldset>
            <p class="note">
                The others are only observed. What the file says ({of.file_mode}) holds again when the time is over, or
                when it is undone.
            </p>
        </Decide>
    );
}

export function UndoDialog({ of, policy, reload, onClose }: Shared & { of: Override }) {
    const seen = usePolicySeen(policy, reload);
    const act = async (word: SaidWord): Promise<void> => {
        await post('/v1/policy/{number}/undo', { number: of.number }, { revision: seen.revision, ...word });
        await reload();
    };
    return (
        <Decide
            title="Undo"
            whys={['It has done its work', 'It hurt somebody', 'It was a mistake']}
            verb="Undo"
            act={act}
            onClose={onClose}
            onConflict={seen.told}
            conflict={<Meanwhile policy={policy} />}
        >
            <p class="hostile">
                {overrideText(of)}, until {moment(Date.parse(of.until), gatewayNow())}: {visible(of.why)}
            </p>
            <p class="note">What the file says holds again at once.</p>
        </Decide>
    );
}

export function BypassDialog({ policy, reload, onClose }: Shared) {
    const seen = usePolicySeen(policy, reload);
    const [isOn] = useState(!policy.bypassed);
    const act = async (word: SaidWord): Promise<void> => {
        await post('/v1/bypass', {}, { on: isOn, revision: seen.revision, ...word });
        await reload();
    };
    return (
        <Decide
            title={isOn ? 'Bypass' : 'End the bypass'}
            whys={
                isOn
                    ? ['To look for a fault', 'It refuses what it must not']
                    : ['The fault is found', 'It was not the gateway']
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
                    ? 'Nothing is decided any more: nothing is refused, held back or stopped, and the gateway is a plain proxy.'
                    : 'Decisions are taken again, as they stand in the policy.'}
            </p>
            <p class="note">
                {isOn
                    ? 'It ends by itself after the time below, or when you end it.'
                    : 'A bypass can be begun again at once.'}
            </p>
        </Decide>
    );
}

/** The overrides that are in force now. */
const Meanwhile = ({ policy }: { policy: Policy }) => (
    <div class="hostile">
        <b>What holds now:</b>
        {policy.overrides.length === 0 ? ' nothing but the file.' : null}
        <ul class="sentences">
            {policy.overrides.map(one => (
                <li key={one.number}>
                    {overrideText(one)}, until {moment(Date.parse(one.until), gatewayNow())}: {visible(one.why)}
                </li>
            ))}
        </ul>
    </div>
);
