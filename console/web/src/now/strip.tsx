// The panel "Requests by outcome": a chart of the requests that ended, per second and by outcome.
// Marks on the chart and a list show the audit log's decisions in the range. In mode observe, a
// note counts the requests that mode enforce would have refused or stopped. A dashed line shows
// these requests over time.
import { useMemo } from 'preact/hooks';
import { axis, seconds } from '../axis';
import { Chart, type Series } from '../chart';
import { RANGE_TEXT, rangeNamed, RANGES, useCourse } from '../course';
import { clock, count, lasting, perSecond } from '../format';
import { marksOf, saidOf, symbolOf } from '../marks';
import { OUTCOMES } from '../outcome';
import { Choice, Panel } from '../page';
import type { Rows } from '../rows';
import type { Note, Status } from '../shapes';
import { sums } from '../sums';
import { href } from '../view';

const MINUTE = 60;

export function Strip({
    range: named,
    notes,
    status,
}: {
    range: string | undefined;
    notes: readonly Note[];
    status: Status | undefined;
}) {
    const range = rangeNamed(named);
    const { rows, version } = useCourse(range);
    const shown = useMemo(() => drawn(rows), [rows, version]);
    const marks = useMemo(() => marksOf(notes), [notes]);
    const first = shown.times[0] ?? 0;
    const inView = notes.filter(note => Date.parse(note.at) / 1000 >= first).slice(0, 6);
    const minute = sums(rows, rows.total, rows.since(MINUTE));
    const would = minute.shadow.refused + minute.shadow.stopped;
    return (
        <Panel
            title="Requests by outcome"
            aside={<Choice label="Range" at={range} of={RANGES} to={range => href('now', undefined, { range })} />}
        >
            <Chart
                title={`Requests that ended, per second, by outcome; ${RANGE_TEXT[range]}`}
                {...shown}
                marks={marks}
                text={perSecond}
                height={240}
            />
            {status?.mode === 'observe' && (
                <p class="note">
                    <b>Observing:</b> in mode enforce, the gateway would have refused {count(minute.shadow.refused)} and
                    stopped {count(minute.shadow.stopped)} of {count(minute.ended)} requests in the last 60 s
                    {would > 0 && ' (the dashed line)'}. <a href={href('policy')}>What would change</a>
                </p>
            )}
            {inView.length > 0 && <Decisions notes={inView} />}
        </Panel>
    );
}

function drawn(rows: Rows): { times: Float64Array; series: Series[]; note: string | undefined } {
    const { from, jump } = axis(rows.gauge('at_ms'));
    const lasted = rows.gauge('lasted_ms').slice(from);
    const rate = (list: Float32Array): Float64Array =>
        lasted.map((ms, at) => (ms > 0 ? ((list[from + at] ?? 0) * 1000) / ms : 0));
    const total = rows.total;
    const would = rate(total.column('shadow_refused'));
    const stopped = rate(total.column('shadow_stopped'));
    const series: Series[] = OUTCOMES.map(({ name, symbol, colour, pattern }) => ({
        name,
        symbol,
        colour,
        pattern,
        values: rate(total.column(name)),
    }));
    const isObserved = would.some(value => value > 0) || stopped.some(value => value > 0);
    if (isObserved)
        series.push({
            name: 'would have been refused or stopped',
            symbol: '┄',
            colour: '--ink',
            dash: [4, 4],
            values: would.map((value, at) => value + (stopped[at] ?? 0)),
        });
    return {
        times: seconds(rows.gauge('at_ms'), from),
        series,
        note:
            jump &&
            `The gateway's clock was set back by ${lasting(jump.ms)} at ${clock(jump.at)}. Earlier values are not drawn.`,
    };
}

function Decisions({ notes }: { notes: readonly Note[] }) {
    return (
        <ul class="decisions" aria-label="Decisions in this range">
            {notes.map((note, at) => (
                <li key={note.at + at}>
                    <span aria-hidden="true">{symbolOf(note)}</span> <time>{clock(Date.parse(note.at))}</time>{' '}
                    {saidOf(note)}
                </li>
            ))}
        </ul>
    );
}
