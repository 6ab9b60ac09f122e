// The panel of one class: its outcomes, response times and waiting requests over time, the mode in
// force, and its last decisions.
import { useMemo } from 'preact/hooks';
import { axis, seconds } from '../axis';
import { Chart } from '../chart';
import { RANGE_TEXT, rangeNamed, RANGES, useCourse } from '../course';
import { useDocument } from '../document';
import { clock, count, duration, lasting, number, perSecond } from '../format';
import { revisions } from '../live';
import { marksOf } from '../marks';
import { OUTCOMES } from '../outcome';
import { Choice, Page, Panel } from '../page';
import { Problem } from '../problem';
import { RequestTable } from '../requests/table';
import type { Rows } from '../rows';
import type { Status } from '../shapes';
import { use } from '../signal';
import { WINDOW_TEXT } from '../sums';
import { href } from '../view';
import { ModeOf, Tier } from './table';

const DECISIONS = '20';

export function ClassDetail({
    name,
    range: named,
    status,
}: {
    name: string;
    range: string | undefined;
    status: Status | undefined;
}) {
    const range = rangeNamed(named);
    const { rows, version } = useCourse(range);
    const changed = use(revisions);
    const audit = useDocument('/v1/audit', { query: { limit: '100' }, revision: changed?.audit });
    const last = useDocument('/v1/requests', { query: { class: name, limit: DECISIONS }, every: 5000 });
    const shown = useMemo(() => drawn(rows, name), [rows, version, name]);
    const of = status?.classes.find(one => one.name === name);
    const marks = marksOf(audit.value?.notes.filter(note => note.of !== 'class' || note.class === name) ?? []);
    const query = encodeURIComponent(name);
    return (
        <Page
            question={`Class ${name}: is it affected, and why?`}
            json={[`/v1/history?range=${range}`, `/v1/requests?class=${query}&limit=${DECISIONS}`, '/v1/status']}
            tools={
                <>
                    <Choice label="Range" at={range} of={RANGES} to={range => href('classes', name, { range })} />
                    <a href={href('classes')}>All classes</a>
                </>
            }
        >
            {status && !of && (
                <p class="problem">
                    The configuration has no class with this name. Values below, if there are any, are from an earlier
                    configuration.
                </p>
            )}
            {of && (
                <p class="row">
                    <Tier of={of.tier} />
                    <span>
                        <ModeOf mode={of.mode} percent={of.enforce_percent} />
                    </span>
                    <span class="why">
                        utility {number(of.utility)} per request ·{' '}
                        {of.patience_ms == null ? 'no patience configured' : `patience ${duration(of.patience_ms)}`} ·{' '}
                        {count(of.waiting)} waiting now
                        {of.may_run_ms != null && ` · a request may run for ${duration(of.may_run_ms)} now`}
                    </span>
                    <a href={href('policy')}>Policy</a>
                </p>
            )}
            {shown ? (
                <>
                    <Panel title="Requests by outcome">
                        <Chart
                            title={`Requests that ended, per second, by outcome; ${RANGE_TEXT[range]}`}
                            times={shown.times}
                            series={shown.outcomes}
                            marks={marks}
                            text={perSecond}
                            height={200}
                            note={shown.note}
                        />
                    </Panel>
                    <div class="columns">
                        <Panel title="Response times">
                            <Chart
                                title={`Response times of answered requests, ${RANGE_TEXT[range]}`}
                                times={shown.times}
                                series={shown.responses}
                                text={duration}
                                height={160}
                            />
                        </Panel>
                        <Panel title="Waiting">
                            <Chart
                                title={`Requests that wait for a slot, ${RANGE_TEXT[range]}`}
                                times={shown.times}
                                series={shown.waiting}
                                text={count}
                                height={160}
                            />
                        </Panel>
                    </div>
                </>
            ) : (
                <p class="empty">No request of this class has ended in the {WINDOW_TEXT[range]}.</p>
            )}
            <Panel
                title="Last requests and decisions"
                aside={<a href={href('why', undefined, { class: name })}>More</a>}
            >
                <Problem of={last.problem} again={() => void last.reload()} />
                <RequestTable
                    caption={`The last ${DECISIONS} requests of class ${name} that have ended, the newest first`}
                    requests={last.value?.requests ?? []}
                />
            </Panel>
        </Page>
    );
}

function drawn(rows: Rows, name: string) {
    const of = rows.class(name);
    if (!of) return undefined;
    const { from, jump } = axis(rows.gauge('at_ms'));
    const lasted = rows.gauge('lasted_ms').slice(from);
    const rate = (list: Float32Array): Float64Array =>
        lasted.map((ms, at) => (ms > 0 ? ((list[from + at] ?? 0) * 1000) / ms : 0));
    const times = (list: Float32Array): (number | null)[] =>
        Array.from(list.subarray(from), value => (Number.isNaN(value) ? null : value));
    return {
        times: seconds(rows.gauge('at_ms'), from),
        outcomes: OUTCOMES.map(({ name, symbol, colour, pattern }) => ({
            name,
            symbol,
            colour,
            pattern,
            values: rate(of.column(name)),
        })),
        responses: [
            { name: 'p50', symbol: '─', colour: '--line-1', values: times(of.column('p50_ms')) },
            { name: 'p99', symbol: '┄', colour: '--line-2', dash: [5, 3], values: times(of.column('p99_ms')) },
        ],
        waiting: [
            {
                name: 'waiting',
                symbol: '─',
                colour: '--line-3',
                values: Array.from(of.column('waiting').subarray(from)),
            },
        ],
        note:
            jump &&
            `The gateway's clock was set back by ${lasting(jump.ms)} at ${clock(jump.at)}. Earlier values are not drawn.`,
    };
}
