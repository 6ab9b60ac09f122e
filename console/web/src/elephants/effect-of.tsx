// What a rule does, since it holds: others before and now, the use of the resource, and who waits under it. Where the
// gateway has measured the minute before, its figures stand there: they tell the requests apart that the rule is for. Else,
// and in the chart, others are the classes that none of the last requests under the rule belongs to; if there are none
// such, all together, which is said.
import { useMemo, useState } from 'preact/hooks';
import { axis, seconds } from '../axis';
import { Chart } from '../chart';
import { type Compared, Comparison } from '../comparison';
import { useDocument } from '../document';
import { count, duration, lasting, percent, perSecond } from '../format';
import { gatewayNow, rows, tick } from '../live';
import { Panel } from '../page';
import { href } from '../route';
import type { Elephant, Gauge, Rule, Use } from '../shapes';
import { use } from '../signal';
import { compared, Course, type Side } from './effect';
import { gaugeRows } from './gauges';

/** Seconds after which nothing has waited since before the rule, about. */
const SETTLED = 30;

export function EffectOf({ elephant, rule }: { elephant: Elephant; rule: Rule }) {
    const version = use(tick);
    const resource = elephant.found?.resource;
    const last = useDocument('/v1/requests', {
        query: { rule: String(elephant.number), limit: '100' },
        every: 10_000,
    });
    const measured = useDocument('/v1/use', {
        query: { resource },
        every: 10_000,
        skip: resource === undefined,
    });
    const since = Date.parse(rule.since);
    const under = useMemo(() => new Set(last.value?.requests.map(one => one.class ?? '')), [last.value]);
    const [course] = useState(() => new Course());
    const shown = useMemo(() => {
        const others = rows.classNames().filter(name => !under.has(name));
        const isAll = others.length === 0;
        const names = isAll ? rows.classNames() : others;
        const of = names.flatMap(name => rows.class(name) ?? []);
        const { from } = axis(rows.gauge('at_ms'));
        return {
            isAll,
            compared: compared(rows, of, since),
            course: course.of(rows, names, from),
            times: seconds(rows.gauge('at_ms'), from),
        };
    }, [version, under, since]);
    const held =
        [...under].length > 0 ? `classes without these requests (${[...under].join(', ')} has some)` : 'all classes';
    const { before, now } = shown.compared;
    const used = measured.value && usedAround(measured.value, since);
    const use_: Compared = {
        name: `Use of ${resource ?? 'the resource'}`,
        before: used?.before,
        after: used?.after,
        text: percent,
    };
    const gauges = rule.before && measuredRows(rule.before, elephant.under ?? undefined, use_, resource);
    return (
        <Panel
            title="What the rule does"
            aside={<span class="why">{lasting(gatewayNow() - since)} so far</span>}
            kind="effect"
        >
            <div class="columns">
                {gauges ? (
                    <Comparison
                        caption={`The last ${lasting((elephant.under?.seconds ?? 0) * 1000)} under the rule against ${lasting((rule.before?.seconds ?? 0) * 1000)} before it; “these” are the requests that the rule is for${(elephant.under?.seconds ?? 0) < SETTLED ? '. In the first seconds there are answers that had waited before it' : ''}`}
                        heads={['Before', 'Under the rule']}
                        rows={gauges}
                    />
                ) : (
                    <Comparison
                        caption={`${shown.isAll ? 'All classes' : `Others: ${held}`}; ${lasting(now.seconds * 1000)} until now against ${lasting(before.seconds * 1000)} before the rule`}
                        heads={['Before', 'Now']}
                        rows={[...estimatedRows(before, now), use_]}
                    />
                )}
                <div class="stack">
                    <dl class="facts">
                        <dt>Run under the rule</dt>
                        <dd>
                            {count(elephant.running)} of {rule.grants.at_once} at once, now
                        </dd>
                        <dt>Wait under it</dt>
                        <dd>
                            {count(elephant.waiting)} of {rule.grants.queue}, now
                        </dd>
                        <dt>Refused (throttled)</dt>
                        <dd>{perSecond(now.throttled)}, last 60 s</dd>
                        <dt>Each of them</dt>
                        <dd>
                            <a href={href('why', undefined, { rule: String(elephant.number) })}>
                                the last requests under the rule
                            </a>
                        </dd>
                    </dl>
                    <Chart
                        title={`Response times of ${shown.isAll ? 'all classes' : 'others'}, each second, last 15 min`}
                        times={shown.times}
                        series={[
                            { name: 'p50, about', symbol: '─', colour: '--line-1', values: shown.course.p50 },
                            {
                                name: 'p99, about',
                                symbol: '┄',
                                colour: '--line-2',
                                dash: [5, 3],
                                values: shown.course.p99,
                            },
                        ]}
                        marks={[{ at: since / 1000, symbol: '▼' }]}
                        text={duration}
                        height={150}
                    />
                </div>
            </div>
        </Panel>
    );
}

/** As the gateway has measured; what it does not say of the resource is read from the windows of its use. */
function measuredRows(
    before: Gauge,
    since: Gauge | undefined,
    use: Compared,
    resource: string | undefined,
): Compared[] {
    const rows = gaugeRows(before, since, resource ?? 'the resource');
    return rows.some(row => row.name === use.name) || use.before === undefined ? rows : [...rows, use];
}

const estimatedRows = (before: Side, now: Side): Compared[] => [
    { name: 'Response p50, about', before: before.p50, after: now.p50, text: duration, better: 'less' },
    { name: 'Response p99, about', before: before.p99, after: now.p99, text: duration, better: 'less' },
    { name: 'Answered in time', before: before.served, after: now.served, text: percent, better: 'more' },
    { name: 'Useful work, of all', before: before.useful, after: now.useful, text: percent, better: 'more' },
];

/** The use of the resource, on average of a minute before, and of the last minute since. */
function usedAround(use: Use, since: number): { before: number | undefined; after: number | undefined } {
    const mean = (list: readonly number[]): number | undefined =>
        list.length ? list.reduce((sum, one) => sum + one, 0) / list.length : undefined;
    const windows = Math.max(1, Math.round(60 / use.step_s));
    const split = use.at_ms.findIndex(at => at > since + use.step_s * 1000);
    const [old, fresh] = split < 0 ? [use.used, []] : [use.used.slice(0, split), use.used.slice(split)];
    return { before: mean(old.slice(-windows)), after: mean(fresh.slice(-windows)) };
}
