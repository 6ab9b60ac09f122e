// The panel with the effect of a rule since it began: one sentence, the other requests before and
// now, the use of the resource, and the requests that wait under the rule. The gateway has measured
// all of it.
import { useMemo } from 'preact/hooks';
import { axis } from '../axis';
import { Chart } from '../chart';
import { type Compared, Comparison } from '../comparison';
import { useDocument } from '../document';
import { count, duration, lasting, moment, percent } from '../format';
import { gatewayNow } from '../live';
import { Panel } from '../page';
import type { Answers, Elephant, Rule, Use } from '../shapes';
import { href } from '../view';
import { isDisturbed, verdict, type Verdict } from './effect';
import { gaugeRows } from './gauges';

const SIGNS: Record<Verdict['kind'], string> = { settling: '◌', better: '✓', worse: '▲', same: '=', unknown: '?' };

export function EffectOf({ elephant, rule, others }: { elephant: Elephant; rule: Rule; others: readonly Elephant[] }) {
    const resource = elephant.found?.resource;
    const answers = useDocument('/v1/elephants/{number}/answers', {
        filled: { number: elephant.number },
        every: 5000,
    });
    const measured = useDocument('/v1/use', { query: { resource }, every: 10_000, skip: resource === undefined });
    const since = Date.parse(rule.since);
    const under = elephant.under ?? undefined;
    const without = rule.before?.at == null ? undefined : Date.parse(rule.before.at);
    const used = measured.value && usedAround(measured.value, without, since);
    const use: Compared = {
        name: `Use of ${resource ?? 'the resource'}`,
        before: used?.before,
        after: used?.after,
        text: percent,
    };
    const rows = gaugeRows(rule.before ?? undefined, under, resource ?? 'the resource');
    const said = verdict(
        rule.before ?? undefined,
        under,
        (gatewayNow() - since) / 1000,
        isDisturbed(elephant.number, rule, others),
    );
    return (
        <Panel
            title="Effect of the rule"
            aside={<span class="why">{lasting(gatewayNow() - since)} so far</span>}
            kind="effect"
        >
            <p class={`verdict ${said.kind}`} role="status">
                <span aria-hidden="true">{SIGNS[said.kind]}</span> {said.text}
            </p>
            <div class="columns">
                <Comparison
                    caption={`The last ${lasting((under?.seconds ?? 0) * 1000)} under the rule${rule.before ? ` compared with ${lasting(rule.before.seconds * 1000)} without one${rule.before.at ? `, until ${moment(Date.parse(rule.before.at), gatewayNow())}` : ''}` : ''}; “these” are the requests that the rule applies to`}
                    heads={['Before', 'Under the rule']}
                    rows={rows.some(row => row.name === use.name) ? rows : [...rows, use]}
                    isOpen={said.kind === 'settling'}
                />
                <div class="stack">
                    <dl class="facts">
                        <dt>Running now</dt>
                        <dd>
                            {count(elephant.running)} of at most {rule.limits.max_concurrency}
                        </dd>
                        <dt>Waiting now</dt>
                        <dd>
                            {count(elephant.waiting)} of at most {rule.limits.queue}
                        </dd>
                        <dt>Requests</dt>
                        <dd>
                            <a href={href('why', undefined, { rule: String(elephant.number) })}>
                                the last requests under the rule
                            </a>
                        </dd>
                    </dl>
                    {answers.value && (
                        <>
                            <AntsChart of={answers.value} since={since} />
                            <p class="note">
                                A rise right after ▼ comes from requests that had waited before the rule began. A
                                response time counts when the answer is complete.
                            </p>
                        </>
                    )}
                </div>
            </div>
        </Panel>
    );
}

function AntsChart({ of, since }: { of: Answers; since: number }) {
    const shown = useMemo(() => {
        const { from } = axis(of.at_ms);
        const read = (name: 'p50' | 'p99'): (number | null)[] =>
            of.ants.slice(from).map(lot => (lot[name] == null ? null : lot[name] * 1000));
        return { times: of.at_ms.slice(from).map(ms => ms / 1000), p50: read('p50'), p99: read('p99') };
    }, [of]);
    return (
        <Chart
            title={`Response times of all other requests, in windows of ${of.step_s} s, last 15 min or as far back as requests are remembered`}
            times={shown.times}
            series={[
                { name: 'p50', symbol: '─', colour: '--line-1', values: shown.p50 },
                { name: 'p99', symbol: '┄', colour: '--line-2', dash: [5, 3], values: shown.p99 },
            ]}
            marks={[{ at: since / 1000, symbol: '▼' }]}
            text={duration}
            height={150}
        />
    );
}

/**
 * Returns the average use of the resource in two periods: the minute before the time `without`, and
 * the last minute since the rule began. An average is undefined if nothing was measured.
 */
function usedAround(
    use: Use,
    without: number | undefined,
    since: number,
): { before: number | undefined; after: number | undefined } {
    const mean = (list: readonly number[]): number | undefined =>
        list.length ? list.reduce((sum, one) => sum + one, 0) / list.length : undefined;
    const windows = Math.max(1, Math.round(60 / use.step_s));
    const of = (isIn: (at: number) => boolean): number | undefined =>
        mean(use.used.filter((_, at) => isIn(use.at_ms[at] ?? 0)).slice(-windows));
    return {
        before: without === undefined ? undefined : of(at => at <= without && at > without - 60_000),
        after: of(at => at > since + use.step_s * 1000),
    };
}
