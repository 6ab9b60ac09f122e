// The chart of useful and wasted work over time, in seconds of service per second: the mean number
// of slots that were busy with each.
import { useMemo } from 'preact/hooks';
import { axis, seconds } from '../axis';
import { Chart, type Series } from '../chart';
import { number } from '../format';
import type { Rows } from '../rows';
import { WINDOW_TEXT, WINDOWS, type WindowName } from '../sums';

/**
 * Returns the text for the time range of the chart. The chart shows 60 seconds instead of ten,
 * because ten would show nothing.
 */
export const spanOf = (window: WindowName): string => WINDOW_TEXT[window === '10s' ? '60s' : window];

export const firstOf = (rows: Rows, window: WindowName): number =>
    Math.max(axis(rows.gauge('at_ms')).from, rows.since(Math.max(60, WINDOWS[window])));

export function WorkChart({ rows, version, window }: { rows: Rows; version: number; window: WindowName }) {
    const shown = useMemo(() => {
        const from = firstOf(rows, window);
        const lasted = rows.gauge('lasted_ms').slice(from);
        const busy = (list: Float32Array): Float64Array =>
            lasted.map((ms, at) => (ms > 0 ? (list[from + at] ?? 0) / ms : 0));
        const series: Series[] = [
            {
                name: 'useful',
                symbol: '●',
                colour: '--served',
                pattern: 'solid',
                values: busy(rows.total.column('useful_ms')),
            },
            {
                name: 'wasted',
                symbol: '▲',
                colour: '--shed',
                pattern: 'rising',
                values: busy(rows.total.column('wasted_ms')),
            },
            { name: 'limit', symbol: '─', colour: '--ink', dash: [4, 4], values: rows.gauge('limit').slice(from) },
        ];
        return { times: seconds(rows.gauge('at_ms'), from), series };
    }, [rows, version, window]);
    return (
        <Chart
            title={`Slots that were busy with useful and wasted work, counted when requests end; ${spanOf(window)}`}
            {...shown}
            text={value => number(value)}
            height={180}
        />
    );
}
