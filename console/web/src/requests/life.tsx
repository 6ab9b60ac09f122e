// The details of one request: when it came, its class, how long it waited, the decision and its
// reason, where it ran, and how it ended. For a request that was only observed, the decision is the
// one that would have been carried out.
import { gatewayNow } from '../live';
import { visible } from '../visible';
import type { ComponentChildren } from 'preact';
import { useDocument } from '../document';
import { bytes, duration, exactly, moment } from '../format';
import { Page, Panel } from '../page';
import { Problem } from '../problem';
import type { Explained, Status } from '../shapes';
import { ReasonOf, words } from '../reason';
import { OutcomeOf } from './table';
import { outcomeOf } from '../outcome';
import { href } from '../view';

export function RequestLifecycle({ name, status }: { name: string; status: Status | undefined }) {
    const { value, problem, reload } = useDocument('/v1/requests/{name}', { filled: { name } });
    return (
        <Page
            question="Why was this request treated this way?"
            json={[`/v1/requests/${encodeURIComponent(name)}`]}
            tools={<a href={href('why')}>The last requests</a>}
        >
            <Problem of={problem} again={() => void reload()} />
            {value && <Told of={value} status={status} />}
        </Page>
    );
}

function Told({ of, status }: { of: Explained; status: Status | undefined }) {
    const [waited, ran] = [(of.queue_wait_us ?? 0) / 1000, (of.service_us ?? 0) / 1000];
    const arrived = of.time - waited - ran;
    return (
        <>
            <section class="panel subject">
                <p>
                    <code class="pattern">{visible(`${of.method ?? ''} ${of.target ?? ''}`)}</code>{' '}
                    <OutcomeOf name={of.outcome} fault={of.fault} />
                </p>
                <p class="why hostile">
                    request {of.request ?? '–'} · {of.protocol} from {visible(of.client)} ·{' '}
                    {moment(of.time, gatewayNow())}
                </p>
            </section>
            <Panel title="Waiting and running time">
                <Proportion waited={waited} ran={ran} />
            </Panel>
            <Panel title="Lifecycle">
                <ol class="life-of">
                    <Step at={exactly(arrived)} name="Arrived">
                        {of.method} from <span class="hostile">{of.client}</span>
                        {of.request_bytes ? `, body ${bytes(of.request_bytes)}` : ''}.
                    </Step>
                    <Step at={exactly(arrived)} name="Classified">
                        Class <a href={href('classes', of.class ?? '')}>{of.class}</a>
                        {of.level ? `, level ${of.level}` : ''}.{' '}
                        {of.session ? (
                            <>
                                Session <span class="hostile">{visible(of.session)}</span>.{' '}
                            </>
                        ) : (
                            'No session. '
                        )}
                        {of.standing && (
                            <>
                                Its standing: <span title={of.standing}>{words(of.standing)}</span>.
                            </>
                        )}
                        {of.rule != null && (
                            <>
                                {' '}
                                The rule of <a href={href('elephants', of.rule)}>elephant {of.rule}</a> applied to it.
                            </>
                        )}
                    </Step>
                    <Step at={exactly(arrived + waited)} name={decided(of)}>
                        {of.explanation ?? 'The gateway took no decision about it.'}{' '}
                        {of.reason && (
                            <>
                                Reason: <ReasonOf name={of.reason} />.{' '}
                            </>
                        )}
                        It waited {duration(waited)} in the queue.
                        {of.mode === 'observe' && (
                            <b> It was only observed: in mode enforce, the gateway would have done this.</b>
                        )}
                    </Step>
                    {ran > 0 && (
                        <Step at={exactly(arrived + waited)} name="Ran">
                            For {duration(ran)}
                            {of.server != null && (
                                <>
                                    {' '}
                                    on server{' '}
                                    <span class="hostile">{status?.servers[of.server]?.server ?? of.server}</span>
                                </>
                            )}
                            .
                        </Step>
                    )}
                    <Step at={exactly(of.time)} name="Ended">
                        <OutcomeOf name={of.outcome} fault={of.fault} />: {outcomeOf(of.outcome ?? '')?.means}.{' '}
                        {of.status == null ? 'It got no answer' : `Status ${of.status}`}
                        {of.response_bytes ? `, ${bytes(of.response_bytes)}` : ''}.
                    </Step>
                </ol>
            </Panel>
        </>
    );
}

const WORDS: Record<string, string> = { run: 'Allowed to run', shed: 'Refused', stop: 'Stopped', wait: 'Left waiting' };
function decided(of: Explained): string {
    const word = WORDS[of.decision ?? ''] ?? 'Decided';
    return of.mode === 'observe' && of.decision !== 'run' ? `Would have been: ${word.toLowerCase()}` : word;
}

const Step = ({ at, name, children }: { at: string; name: string; children: ComponentChildren }) => (
    <li>
        <time>{at}</time>
        <b>{name}</b>
        <span>{children}</span>
    </li>
);

function Proportion({ waited, ran }: { waited: number; ran: number }) {
    const all = waited + ran;
    const part = all > 0 ? (waited / all) * 100 : 0;
    return (
        <>
            <div class="life" role="img" aria-label={`Waited ${duration(waited)}, ran ${duration(ran)}`}>
                <span class="waited" style={{ width: `${part}%` }} />
                <span class="ran" style={{ width: `${all > 0 ? 100 - part : 0}%` }} />
            </div>
            <p class="why row">
                <span>▨ waited {duration(waited)}</span>
                <span>■ ran {duration(ran)}</span>
                <span>total {duration(all)}</span>
            </p>
        </>
    );
}
