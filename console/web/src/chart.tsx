// A chart over time, with lines or stacked areas.
//
// It has a legend of its own: symbol, pattern and name next to the colour, and a value. The value
// is the one under the pointer, or the last one. Marks show when decisions were taken. A text
// describes the chart for people who do not see it.
//
// uPlot draws each chart in a task of its own, and only while the chart is on the screen.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { clock, NONE } from './format';
import type { Pattern } from './outcome';
import { tile } from './pattern';
import { use } from './signal';
import { soon } from './slices';
import { Swatch } from './swatch';
import { colour, palette } from './theme';

export interface Series {
    name: string;
    /** The symbol in front of the name in the legend. */
    symbol?: string;
    /** The custom property of the style sheet that has the colour. */
    colour: string;
    /** The fill pattern of an area. A line has no pattern. */
    pattern?: Pattern;
    dash?: number[];
    /** Whether each value stands for a window that ends at its time. The line then has steps. */
    isStepped?: boolean;
    values: ArrayLike<number | null>;
}

export interface Mark {
    /** The time in seconds since 1970. */
    at: number;
    symbol: string;
}

interface Properties {
    /** The subject of the chart, with the unit and the time range. */
    title: string;
    /** The times in seconds since 1970, in ascending order. */
    times: ArrayLike<number>;
    /** The areas, which are stacked, and the lines, which are drawn over them. */
    series: readonly Series[];
    /** Formats a value with its unit. */
    text: (value: number | null | undefined) => string;
    height?: number;
    marks?: readonly Mark[];
    /** The minimum of the upper end of the value axis. */
    most?: number;
    /** A note below the chart. */
    note?: string | undefined;
}

export function Chart(properties: Properties) {
    const { title, times, series, text, height = 180, note } = properties;
    const place = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | undefined>(undefined);
    const isSeen = useRef(true);
    const latest = useRef(properties);
    latest.current = properties;
    const [at, setAt] = useState<number | null>(null);
    const drawn = use(palette);
    const kinds = series.map(one => `${one.name}\0${one.colour}\0${one.pattern ?? ''}`).join('\n');

    const refresh = (): void => {
        const made = plot.current;
        if (made && isSeen.current && made.data[0] !== latest.current.times) made.setData(stacked(latest.current));
    };

    useEffect(() => {
        const target = place.current;
        if (!target) return;
        let made: uPlot | undefined;
        const resized = new ResizeObserver(() => {
            const width = target.clientWidth;
            if (made && width > 0 && width !== made.width) made.setSize({ width, height });
        });
        const seen = new IntersectionObserver(
            list => {
                isSeen.current = list.at(-1)?.isIntersecting ?? true;
                refresh();
            },
            { rootMargin: '200px' },
        );
        const forget = soon(() => {
            const width = target.clientWidth || 300;
            plot.current = made = new uPlot(options(latest, width, height, setAt), stacked(latest.current), target);
            resized.observe(target);
            seen.observe(target);
        });
        return () => {
            forget();
            resized.disconnect();
            seen.disconnect();
            made?.destroy();
            plot.current = undefined;
        };
    }, [kinds, drawn, height]);

    useEffect(() => (plot.current && plot.current.data[0] !== times ? soon(refresh) : undefined));

    const row = at !== null && at < times.length ? at : times.length - 1;
    const when = times[row];
    return (
        <figure class="chart">
            <figcaption>
                <span class="title">{title}</span>
                <span class="when">
                    {when === undefined
                        ? ''
                        : at === null
                          ? `at ${clock(when * 1000)} (last)`
                          : `at ${clock(when * 1000)}`}
                </span>
            </figcaption>
            <div
                class="plot"
                ref={place}
                hidden={times.length < 2}
                style={{ minHeight: `${height}px` }}
                role="img"
                aria-label={spoken(title, series, text)}
            />
            {times.length < 2 && <p class="empty">Nothing yet.</p>}
            <ul class="legend">
                {series.map(one => (
                    <li key={one.name}>
                        <Swatch pattern={one.pattern} of={one.colour} dash={one.dash} />
                        <span>
                            {one.symbol ? `${one.symbol} ` : ''}
                            {one.name}
                        </span>
                        <b>{row < 0 ? NONE : text(one.values[row])}</b>
                    </li>
                ))}
            </ul>
            {note && <p class="note">{note}</p>}
        </figure>
    );
}

const spoken = (title: string, series: readonly Series[], text: Properties['text']): string =>
    `${title}. Last: ${series.map(one => `${one.name} ${text(one.values[one.values.length - 1])}`).join(', ')}.`;

/**
 * Returns the data in the order in which uPlot draws it: first the areas from the highest sum to
 * the lowest, so that each paints over the one before, then the lines.
 */
function stacked({ times, series }: Properties): uPlot.AlignedData {
    const areas = series.filter(one => one.pattern);
    const sum = new Float64Array(times.length);
    const sums = areas.map(one => {
        for (let at = 0; at < sum.length; at += 1) sum[at] = (sum[at] ?? 0) + Math.max(0, one.values[at] ?? 0);
        return sum.slice();
    });
    const lines = series
        .filter(one => !one.pattern)
        .map(one => Array.from(one.values, value => (Number.isNaN(value) ? null : value)));
    return [times, ...sums.reverse(), ...lines] as unknown as uPlot.AlignedData;
}

function options(
    latest: { current: Properties },
    width: number,
    height: number,
    setAt: (at: number | null) => void,
): uPlot.Options {
    const { series } = latest.current;
    const [ink, grid, panel] = [colour('--muted'), colour('--grid'), colour('--panel')];
    const font = '12px system-ui, sans-serif';
    const axis = { stroke: ink, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, size: 4 } };
    const area = (one: Series): uPlot.Series => ({
        stroke: colour(one.colour),
        width: 0,
        fill: filled(one.pattern ?? 'solid', colour(one.colour), panel),
        paths: uPlot.paths.stepped!({ align: -1 }),
        points: { show: false },
    });
    const line = (one: Series): uPlot.Series => ({
        stroke: colour(one.colour),
        width: 1.75,
        dash: one.dash ?? [],
        spanGaps: false,
        ...(one.isStepped ? { paths: uPlot.paths.stepped!({ align: -1 }) } : {}),
        points: { show: false },
    });
    return {
        width,
        height,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        padding: [8, 24, 0, 0],
        scales: {
            x: { time: true },
            y: { range: (_, __, most) => [0, Math.max(most || 0, latest.current.most ?? 0) * 1.05 || 1] },
        },
        axes: [
            {
                ...axis,
                size: 28,
                space: 80,
                values: (_, at, __, ___, step) => at.map(one => clock(one * 1000).slice(0, step < 60 ? 8 : 5)),
            },
            {
                ...axis,
                size: 62,
                space: 34,
                values: (_, at) => at.map(one => latest.current.text(one).replace(/\.0+(?=\D|$)/, '')).map(unlike),
            },
        ],
        series: [
            {},
            ...series
                .filter(one => one.pattern)
                .map(area)
                .reverse(),
            ...series.filter(one => !one.pattern).map(line),
        ],
        hooks: {
            setCursor: [plot => setAt(plot.cursor.idx ?? null)],
            draw: [plot => draw(plot, latest.current.marks ?? [], colour('--ink'))],
        },
    };
}

/**
 * Returns a fill for uPlot. The fill creates its pattern once for each scale of the screen, and not
 * at each drawing.
 */
function filled(pattern: Pattern, of: string, mark: string): (plot: uPlot) => string {
    let made: CanvasPattern | null = null;
    let scale = 0;
    return plot => {
        if (!made || scale !== devicePixelRatio) {
            scale = devicePixelRatio;
            made = plot.ctx.createPattern(tile(pattern, of, mark), 'repeat');
        }
        return made as unknown as string;
    };
}

function draw(plot: uPlot, marks: readonly Mark[], ink: string): void {
    const { ctx, bbox } = plot;
    const scale = devicePixelRatio || 1;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.lineWidth = scale;
    ctx.setLineDash([3 * scale, 3 * scale]);
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    ctx.textAlign = 'center';
    for (const mark of marks) {
        const x = plot.valToPos(mark.at, 'x', true);
        if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top + 12 * scale);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.fillText(mark.symbol, x, bbox.top + 9 * scale);
    }
    ctx.restore();
}

/**
 * Returns an empty label if the label repeats the one before it. Labels repeat if the scale is
 * finer than whole counts.
 */
const unlike = (text: string, at: number, all: readonly string[]): string => (text === all[at - 1] ? '' : text);
