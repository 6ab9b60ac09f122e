// The panel with the predicted effect of a rule while it is edited, and the buttons to decide.
import { useMemo, useState } from 'preact/hooks';
import { mayNotDecide, token } from '../operator';
import { Panel } from '../page';
import { Problem } from '../problem';
import type { Elephant } from '../shapes';
import { use } from '../signal';
import { visible } from '../visible';
import { changeOf, edited, isChange, wrongOf, type Edited } from './change';
import { Deciding, type Doing } from './deciding';
import { Fields } from './fields';
import { Prediction } from './prediction';
import { usePreview } from './preview';
import { limitsText, kindOf, type StateKind } from './words';

const DOINGS: Record<StateKind, readonly Doing[]> = {
    proposed: [
        { verb: 'approve', name: 'Approve…', isMain: true },
        { verb: 'try', name: 'Try for 60 s…' },
        { verb: 'reject', name: 'Reject…' },
    ],
    rejected: [
        { verb: 'approve', name: 'Approve…' },
        { verb: 'try', name: 'Try for 60 s…' },
        { verb: 'undo', name: 'Undo the rejection…' },
    ],
    held: [
        { verb: 'approve', name: 'Change the rule…' },
        { verb: 'undo', name: 'Undo…' },
    ],
    trial: [
        { verb: 'approve', name: 'Approve…' },
        { verb: 'undo', name: 'Undo…' },
    ],
};

export function RuleOf({ elephant, reload }: { elephant: Elephant; reload: () => Promise<void> }) {
    const usual = elephant.proposed;
    const [now, setNow] = useState<Edited | undefined>();
    const [doing, setDoing] = useState<Doing>();
    const mayNot = mayNotDecide(use(token));
    const fields = now ?? (usual ? edited(usual) : undefined);
    const wrong = fields && wrongOf(fields);
    /**
     * Returns why the button of this decision is disabled; undefined if it is enabled. Errors in
     * the fields disable only decisions that begin a rule.
     */
    const whyNot = (verb: Doing['verb']): string | undefined =>
        mayNot ?? (verb === 'approve' || verb === 'try' ? wrong : undefined);
    const change = useMemo(
        () => (fields && usual ? changeOf(fields, usual) : {}),
        [JSON.stringify(fields), JSON.stringify(usual)],
    );
    const preview = usePreview(elephant, JSON.stringify(change));
    const kind = kindOf(elephant);
    // The effect of a rule in force is measured, see above. Only a changed one needs a prediction.
    const isOpen = (kind !== 'held' && kind !== 'trial') || isChange(change);
    const title = kind === 'held' || kind === 'trial' ? 'The rule' : 'What would a rule do?';
    return (
        <Panel title={title}>
            {usual && fields && (
                <>
                    <Fields
                        now={fields}
                        onInput={setNow}
                        isBytes={elephant.found?.consists_of === 'bytes' || usual.bytes != null}
                    />
                    {preview.value && <p class="why">{limitsText(preview.value.limits)} Other requests go first.</p>}
                    <Problem of={preview.problem} />
                    {isOpen && <Prediction elephant={elephant} preview={preview.value} />}
                </>
            )}
            {elephant.lanes && (
                <p class="note">
                    {elephant.lanes.in_force
                        ? 'Lanes of the network device limit the bytes.'
                        : `A token bucket limits the bytes: ${elephant.lanes.why ?? 'there are no lanes'}.`}
                </p>
            )}
            {elephant.within && elephant.within.length > 0 && (
                <p class="note hostile">
                    The pattern also matches {visible(elephant.within.join(', '))}. The rule does not apply to these.
                </p>
            )}
            <div class="row">
                {DOINGS[kind].map(one => (
                    <button
                        key={one.verb}
                        type="button"
                        class={one.isMain ? 'main' : ''}
                        disabled={whyNot(one.verb) !== undefined}
                        title={whyNot(one.verb)}
                        onClick={() => setDoing(one)}
                    >
                        {one.name}
                    </button>
                ))}
                {now && isChange(change) && (
                    <button type="button" class="quiet" onClick={() => setNow(undefined)}>
                        Reset to the proposal
                    </button>
                )}
            </div>
            {(mayNot ?? wrong) && <p class={mayNot ? 'note' : 'note bad'}>{mayNot ?? wrong}</p>}
            {doing && (
                <Deciding
                    {...{ elephant, doing, change, preview: preview.value, reload }}
                    onClose={() => setDoing(undefined)}
                    onDone={() => setNow(undefined)}
                />
            )}
        </Panel>
    );
}
