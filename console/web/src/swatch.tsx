// A small area in a legend, with the same pattern as in the chart.
import { useEffect, useRef } from 'preact/hooks';
import type { Pattern } from './outcome';
import { tile } from './pattern';
import { use } from './signal';
import { soon } from './slices';
import { colour, palette } from './theme';

export function Swatch({
    pattern,
    of,
    dash,
}: {
    pattern?: Pattern | undefined;
    of: string;
    dash?: number[] | undefined;
}) {
    const canvas = useRef<HTMLCanvasElement>(null);
    const drawn = use(palette);
    const dashes = dash?.join();
    useEffect(
        () => soon(() => canvas.current && paint(canvas.current, pattern, of, dash)),
        [pattern, of, dashes, drawn],
    );
    return <canvas ref={canvas} class="swatch" width={32} height={20} aria-hidden="true" />;
}

function paint(canvas: HTMLCanvasElement, pattern: Pattern | undefined, of: string, dash: number[] | undefined): void {
    const to = canvas.getContext('2d');
    if (!to) return;
    to.clearRect(0, 0, 32, 20);
    if (pattern) {
        to.fillStyle = to.createPattern(tile(pattern, colour(of), colour('--panel'), 2), 'repeat') ?? '#888';
        to.fillRect(0, 0, 32, 20);
        return;
    }
    to.strokeStyle = colour(of);
    to.lineWidth = 4;
    to.setLineDash((dash ?? []).map(length => length * 2));
    to.beginPath();
    to.moveTo(0, 10);
    to.lineTo(32, 10);
    to.stroke();
}
