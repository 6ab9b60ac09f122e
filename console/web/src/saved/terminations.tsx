// Terminations: the thresholds in force, how many were stopped, and the share of requests that was lost meanwhile.
import { useMemo } from 'preact/hooks';
import { seconds } from '../axis';
import { Chart } from '../chart';
import { percent, perSecond } from '../format';
import { OUTCOMES } from '../outcome';
import { Panel } from '../page';
import { Parameters } from '../policy/parameters';
import type { Rows } from '../rows';
import type { PolicyInForce } from '../shapes';
import type { WindowName } from '../sums';
import { firstOf, spanOf } from './work';

const LOST = ['shed', 'expired', 'terminated'] as const;

interface Properties {
    rows: Rows;
    version: number;
    terminate: PolicyInForce | undefined;
    stoppable: readonly string[] | undefined;
    window: WindowName;
}

export function Terminations({ rows, version, terminate, stoppable, window }: Properties) {
    const shown = useMemo(() => {
        const from = firstOf(rows, window);
        const total = rows.total;
        const lasted = rows.gauge('lasted_ms').slice(from);
        const lists = LOST.map(name => total.column(name));
        const every = OUTCOMES.map(one => total.column(one.name));
        const sum = (of: Float32Array[], at: number): number => of.reduce((all, list) => all + (list[at] ?? 0), 0);
        return {
            times: seconds(rows.gauge('at_ms'), from),
            terminated: lasted.map((ms, at) =>
                ms > 0 ? ((total.column('terminated')[from + at] ?? 0) * 1000) / ms : 0,
            ),
            lost: Array.from(lasted, (_, at) =>
                sum(every, from + at) > 0 ? sum(lists, from + at) / sum(every, from + at) : null,
            ),
        };
    }, [rows, version, window]);
    const text = spanOf(window);
    return (
        <Panel title="Terminations: the threshold against what is lost">
            {terminate && (
                <p>
                    <Parameters of={terminate} />{' '}
                    <span class="why">
                        {stoppable && stoppable.length > 0
                            ? `Of classes ${stoppable.join(', ')}, which the file says can be stopped.`
                            : 'The file says of no class that it can be stopped.'}
                    </span>
                </p>
            )}
            <div class="columns">
                <Chart
                    title={`Terminated, per second; ${text}`}
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
                <Chart
                    title={`Lost (shed, expired or terminated) of all that ended; ${text}`}
                    times={shown.times}
                    series={[{ name: 'lost', symbol: '▲', colour: '--shed', pattern: 'cross', values: shown.lost }]}
                    text={percent}
                    height={150}
                    most={0.1}
                />
            </div>
        </Panel>
    );
}
