// The panel of terminations: how many requests were stopped. For each class whose requests can be
// stopped, a chart shows how long a request may run, and the fraction of its requests that was
// lost.
import { useMemo } from 'preact/hooks';
import { seconds } from '../axis';
import { Chart } from '../chart';
import { duration, percent, perSecond } from '../format';
import { OUTCOMES } from '../outcome';
import { Panel } from '../page';
import { Parameters } from '../policy/parameters';
import type { ClassRows, Rows } from '../rows';
import type { PolicyInForce } from '../shapes';
import type { WindowName } from '../sums';
import { firstOf, spanOf } from './work';

const LOST = ['shed', 'expired', 'terminated'] as const;

interface Properties {
    rows: Rows;
    version: number;
    terminate: PolicyInForce | undefined;
    cancellable: readonly string[] | undefined;
    window: WindowName;
}

export function Terminations({ rows, version, terminate, cancellable, window }: Properties) {
    const shown = useMemo(() => {
        const from = firstOf(rows, window);
        const lasted = rows.gauge('lasted_ms').slice(from);
        const terminated = rows.total.column('terminated');
        return {
            times: seconds(rows.gauge('at_ms'), from),
            terminated: lasted.map((ms, at) => (ms > 0 ? (terminated[from + at]! * 1000) / ms : 0)),
            lost: lostOf(rows.total, from),
        };
    }, [rows, version, window]);
    const known = (cancellable ?? []).filter(name => rows.class(name));
    const isStopping = known.length > 0 || shown.terminated.some(count => count > 0);
    const text = spanOf(window);
    return (
        <Panel title="Terminations: time limits and losses">
            {terminate && (
                <p>
                    <Parameters of={terminate} />{' '}
                    <span class="why">
                        {cancellable && cancellable.length > 0
                            ? `Classes whose requests can be stopped: ${cancellable.join(', ')}.`
                            : 'No class is configured so that its requests can be stopped (`cancellable`).'}
                    </span>
                </p>
            )}
            <div class={isStopping ? 'columns' : ''}>
                {isStopping && (
                    <Chart
                        title={`All classes: terminated, per second; ${text}`}
                        times={shown.times}
                        series={[
                            {
                                name: 'terminated',
                                symbol: '■',
                                colour: '--terminated',
                                pattern: 'upright',
                                values: shown.terminated,
                            },
                        ]}
                        text={perSecond}
                        height={150}
                        most={1}
                    />
                )}
                <Chart
                    title={`All classes: lost requests (shed, expired or terminated), of those that ended; ${text}`}
                    times={shown.times}
                    series={[{ name: 'lost', symbol: '▲', colour: '--shed', pattern: 'cross', values: shown.lost }]}
                    text={percent}
                    height={150}
                    most={0.1}
                />
            </div>
            {known.slice(0, MOST).map(name => (
                <Threshold key={name} {...{ rows, version, window, name }} times={shown.times} />
            ))}
            {known.length > MOST && <p class="note">{known.length - MOST} more classes are not drawn.</p>}
        </Panel>
    );
}

const MOST = 8;

/** A chart of the threshold and the losses of one class. */
function Threshold({
    rows,
    version,
    window,
    name,
    times,
}: Pick<Properties, 'rows' | 'version' | 'window'> & { name: string; times: Float64Array }) {
    const shown = useMemo(() => {
        const from = firstOf(rows, window);
        const of = rows.class(name)!;
        return { mayRun: of.column('may_run_ms').slice(from), lost: lostOf(of, from) };
    }, [rows, version, window, name]);
    const isKnown = shown.mayRun.some(ms => ms >= 0);
    const text = spanOf(window);
    return (
        <div class="columns">
            <div>
                {isKnown ? (
                    <Chart
                        title={`Class ${name}: how long a request may run; ${text}`}
                        times={times}
                        series={[{ name: 'may run', symbol: '─', colour: '--terminated', values: shown.mayRun }]}
                        text={duration}
                        height={130}
                    />
                ) : (
                    <p class="empty">
                        Class {name}: no request could be stopped in the {text}, so there is no time limit.
                    </p>
                )}
            </div>
            <Chart
                title={`Class ${name}: lost requests, of those that ended; ${text}`}
                times={times}
                series={[{ name: 'lost', symbol: '▲', colour: '--shed', pattern: 'cross', values: shown.lost }]}
                text={percent}
                height={130}
                most={0.1}
            />
        </div>
    );
}

/** Returns the fraction of the ended requests that was lost, row by row; null if none ended. */
function lostOf(of: ClassRows, from: number): (number | null)[] {
    const lists = LOST.map(name => of.column(name));
    const every = OUTCOMES.map(one => of.column(one.name));
    const sum = (lists: readonly Float32Array[], at: number): number => {
        let all = 0;
        for (const list of lists) all += list[at]!;
        return all;
    };
    return Array.from({ length: every[0]!.length - from }, (_, at) => {
        const ended = sum(every, from + at);
        return ended > 0 ? sum(lists, from + at) / ended : null;
    });
}
