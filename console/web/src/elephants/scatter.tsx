// A chart of the points from which a cost was estimated, and the line through them. Each point is a
// window. Its coordinates are the number of the elephant's requests that were worked on, and the
// use of the resource without the estimated cost of the other requests.
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { useDocument } from '../document';
import { duration, percent, perSecond } from '../format';
import { Problem } from '../problem';
import type { Evidence } from '../shapes';
import { use } from '../signal';
import { visible } from '../visible';
import { colour, palette } from '../theme';

export function Scatter({ number }: { number: number }) {
    const { value, problem, reload } = useDocument('/v1/elephants/{number}/evidence', {
        filled: { number },
        every: 10_000,
    });
    if (!value && problem?.code === 'not_found')
        return <p class="note">No scatter plot: {visible(problem.message)}.</p>;
    if (!value) return <Problem of={problem} again={() => void reload()} />;
    return (
        <figure class="chart">
            <figcaption>
                <span>
                    Use of {value.resource} without the cost of other elephants, by these requests per second;{' '}
                    {value.at_ms.length} windows of {duration(value.step_s * 1000)}
                </span>
            </figcaption>
            <Points of={value} />
            <p class="note">
                The line: each request per second uses {percent(value.slope)} of {value.resource}.
            </p>
        </figure>
    );
}

function Points({ of }: { of: Evidence }) {
    const place = useRef<HTMLDivElement>(null);
    const latest = useRef(of);
    latest.current = of;
    const plot = useRef<uPlot | undefined>(undefined);
    const drawn = use(palette);
    useLayoutEffect(() => {
        const target = place.current;
        if (!target) return;
        const made = new uPlot(options(latest, target.clientWidth || 300), aligned(latest.current), target);
        plot.current = made;
        const watch = new ResizeObserver(
            () => target.clientWidth !== made.width && made.setSize({ width: target.clientWidth, height: HEIGHT }),
        );
        watch.observe(target);
        return () => {
            watch.disconnect();
            made.destroy();
        };
    }, [drawn]);
    useEffect(() => plot.current?.setData(aligned(of)), [of]);
    const last = of.at_ms.length - 1;
    return (
        <div
            class="plot"
            ref={place}
            role="img"
            aria-label={`${of.at_ms.length} points, and a line that rises by ${percent(of.slope)} with each request per second. Last: ${perSecond(of.requests_per_s[last])}, ${percent(of.without_others[last])}.`}
        />
    );
}

const HEIGHT = 220;

/** Returns the points sorted by the rate of requests, as a chart needs them. */
function aligned(of: Evidence): uPlot.AlignedData {
    const order = of.requests_per_s.map((_, at) => at).sort((a, b) => of.requests_per_s[a]! - of.requests_per_s[b]!);
    return [order.map(at => of.requests_per_s[at]!), order.map(at => of.without_others[at]!)];
}

function options(latest: { current: Evidence }, width: number): uPlot.Options {
    const [ink, grid] = [colour('--muted'), colour('--grid')];
    const axis = {
        stroke: ink,
        font: '12px system-ui, sans-serif',
        grid: { stroke: grid, width: 1 },
        ticks: { stroke: grid, size: 4 },
    };
    return {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 12, 0, 0],
        scales: {
            x: { time: false, range: (_, __, most) => [0, (most || 1) * 1.05] },
            y: { range: (_, least, most) => [Math.min(0, least), Math.max(0.1, most) * 1.05] },
        },
        axes: [
            { ...axis, size: 28, values: (_, at) => at.map(one => perSecond(one).replace(/\.0(?=\D)/, '')) },
            { ...axis, size: 56, values: (_, at) => at.map(one => percent(one).replace(/\.0(?=\D)/, '')) },
        ],
        series: [
            {},
            {
                stroke: 'transparent',
                paths: () => null,
                points: { show: true, size: 5, stroke: colour('--throttled'), fill: colour('--panel'), width: 1.25 },
            },
        ],
        hooks: { draw: [plot => line(plot, latest.current)] },
    };
}

/** Draws the regression line through the mean of the points, with the estimated slope. */
function line(plot: uPlot, of: Evidence): void {
    const mean = (list: readonly number[]): number =>
        list.reduce((sum, one) => sum + one, 0) / Math.max(1, list.length);
    const base = mean(of.without_others) - of.slope * mean(of.requests_per_s);
    const most = plot.scales.x?.max ?? 0;
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = colour('--terminated');
    ctx.lineWidth = 1.75 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(plot.valToPos(0, 'x', true), plot.valToPos(base, 'y', true));
    ctx.lineTo(plot.valToPos(most, 'x', true), plot.valToPos(base + of.slope * most, 'y', true));
    ctx.stroke();
    ctx.restore();
}
