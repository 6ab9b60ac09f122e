// One elephant: the decision in force, the effect that a rule would have or has had, and the
// evidence for the finding.
import { visible } from '../visible';
import { useDocument } from '../document';
import { gatewayNow, revisions } from '../live';
import { Page, Panel } from '../page';
import { Problem } from '../problem';
import type { Elephant } from '../shapes';
import { use } from '../signal';
import { href } from '../view';
import { EffectOf } from './effect-of';
import { RuleOf } from './rule-of';
import { State } from './list';
import { Scatter } from './scatter';
import { TrialOf } from './trial-of';
import { UseOf } from './use-of';
import { evidence, isCounted, names, ruleOf, stateText } from './words';

export function Detail({ number, others }: { number: string; others: readonly Elephant[] }) {
    const changed = use(revisions);
    const at = `/v1/elephants/${encodeURIComponent(number)}`;
    const { value, problem, reload } = useDocument('/v1/elephants/{number}', {
        filled: { number },
        revision: changed?.elephants,
        every: 3000,
    });
    return (
        <Page
            question={`Elephant ${number}: ${value && ruleOf(value) ? 'does the rule help?' : 'should I throttle it?'}`}
            json={[
                at,
                '/v1/audit',
                ...(value?.found
                    ? [`${at}/evidence`, `/v1/use?resource=${encodeURIComponent(value.found.resource)}`]
                    : []),
            ]}
            tools={<a href={href('elephants')}>All elephants</a>}
        >
            <Problem of={problem} again={() => void reload()} />
            {value && <Known of={value} others={others} reload={reload} />}
        </Page>
    );
}

function Known({ of, others, reload }: { of: Elephant; others: readonly Elephant[]; reload: () => Promise<void> }) {
    const changed = use(revisions);
    const audit = useDocument('/v1/audit', { query: { limit: '100' }, revision: changed?.audit });
    const notes = audit.value?.notes.filter(note => note.of === 'elephant' && note.number === of.number) ?? [];
    const rule = ruleOf(of);
    return (
        <>
            <section class="panel subject">
                <p>
                    {names(of).map((name, at) => (
                        <span key={name}>
                            {at > 0 && ' or '}
                            <code class="pattern">{visible(name)}</code>
                        </span>
                    ))}{' '}
                    <State of={of} />
                </p>
                {names(of).length > 1 && (
                    <p class="why">
                        These requests always occur together. Any of them may cause the load, and the costs are those of
                        all together.
                    </p>
                )}
                <p class="hostile">{stateText(of, gatewayNow())}</p>
            </section>
            {rule && <EffectOf elephant={of} rule={rule} others={others} />}
            <div class="columns">
                <RuleOf elephant={of} reload={reload} />
                <Panel title="Evidence">
                    {of.found ? (
                        <>
                            <ul class="sentences">
                                {evidence(of.found).map(text => (
                                    <li key={text}>{text}</li>
                                ))}
                            </ul>
                            {rule && (
                                <p class="note">
                                    These figures follow a rule slowly, because older requests still count. See above
                                    for the effect of the rule.
                                </p>
                            )}
                            {of.found.one_client && !of.found.one_client.address.includes('/') && (
                                <p>
                                    <a href={href('why', undefined, { client: of.found.one_client.address })}>
                                        the last requests from {of.found.one_client.address}
                                    </a>
                                </p>
                            )}
                            {!isCounted(of.found) && <Scatter number={of.number} />}
                        </>
                    ) : (
                        <p class="empty">
                            This rule is from the configuration file and needs no evidence. The search has not found
                            these requests.
                        </p>
                    )}
                </Panel>
            </div>
            {of.trial && (
                <TrialOf
                    trial={of.trial}
                    resource={of.found?.resource ?? 'the resource'}
                    isOn={rule?.origin === 'trial'}
                />
            )}
            {of.found && <UseOf resource={of.found.resource} revision={changed?.elephants} notes={notes} />}
        </>
    );
}
