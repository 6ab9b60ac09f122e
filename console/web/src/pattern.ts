// Fill patterns of areas, so that areas can be distinguished without colour. A pattern is a canvas
// tile of the area's colour, with marks in the page's background colour.
import type { Pattern } from './outcome';

const SIZE = 8;

export function tile(pattern: Pattern, colour: string, mark: string, scale = devicePixelRatio || 1): HTMLCanvasElement {
    const canvas = document.createElement('canvas');
    const side = Math.round(SIZE * scale);
    canvas.width = canvas.height = side;
    const to = canvas.getContext('2d');
    if (!to) return canvas;
    to.fillStyle = colour;
    to.fillRect(0, 0, side, side);
    to.strokeStyle = to.fillStyle = mark;
    to.lineWidth = Math.max(1, 1.4 * scale);
    const line = (...points: [number, number, number, number][]): void => {
        to.beginPath();
        for (const [x, y, u, v] of points) {
            to.moveTo(x * side, y * side);
            to.lineTo(u * side, v * side);
        }
        to.stroke();
    };
    const rising: [number, number, number, number][] = [
        [-0.1, 1.1, 1.1, -0.1],
        [-0.1, 0.1, 0.1, -0.1],
        [0.9, 1.1, 1.1, 0.9],
    ];
    const falling: [number, number, number, number][] = [
        [-0.1, -0.1, 1.1, 1.1],
        [0.9, -0.1, 1.1, 0.1],
        [-0.1, 0.9, 0.1, 1.1],
    ];
    if (pattern === 'rising') line(...rising);
    else if (pattern === 'falling') line(...falling);
    else if (pattern === 'cross') line(...rising, ...falling);
    else if (pattern === 'across') line([0, 0.5, 1, 0.5]);
    else if (pattern === 'upright') line([0.5, 0, 0.5, 1]);
    else if (pattern === 'checks') {
        to.fillRect(0, 0, side / 2, side / 2);
        to.fillRect(side / 2, side / 2, side / 2, side / 2);
    } else if (pattern === 'dots') {
        to.beginPath();
        for (const [x, y] of [
            [0.25, 0.25],
            [0.75, 0.75],
        ] as const) {
            to.moveTo((x + 0.13) * side, y * side);
            to.arc(x * side, y * side, 0.13 * side, 0, 7);
        }
        to.fill();
    }
    return canvas;
}
