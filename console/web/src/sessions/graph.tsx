// The graph of sessions. Each class is a circle. Its size shows the number of visits, and its label
// the worth of a session there. An arrow leads to each class that is requested next, and its width
// shows the probability. The table below the graph has the same values.
import { useState } from 'preact/hooks';
import { number, percent } from '../format';
import { type Edge, layout, type Node } from './layout';
import type { ClassLearned } from '../shapes';
import { href } from '../view';

export function Graph({
    classes,
    isTransaction,
}: {
    classes: readonly ClassLearned[];
    isTransaction: (name: string) => boolean;
}) {
    const [at, setAt] = useState<string>();
    const graph = layout(classes, isTransaction);
    if (graph.nodes.length === 0) return <p class="empty">No session has been seen yet.</p>;
    const isDim = (edge: Edge): boolean => at !== undefined && edge.from.of.name !== at && edge.to.of.name !== at;
    return (
        <div class="graph" role="group" aria-label="Graph of sessions; the table below says the same" tabIndex={0}>
            <svg viewBox={`0 0 ${graph.width} ${graph.height}`} width={graph.width} height={graph.height}>
                <defs>
                    <marker
                        id="arrow"
                        viewBox="0 0 8 8"
                        refX="7"
                        refY="4"
                        markerWidth="8"
                        markerHeight="8"
                        markerUnits="userSpaceOnUse"
                        orient="auto"
                    >
                        <path d="M0 0L8 4L0 8z" class="head" />
                    </marker>
                </defs>
                {graph.edges
                    .filter(edge => edge.from !== edge.to)
                    .map(edge => (
                        <Arrow
                            key={`${edge.from.of.name} ${edge.to.of.name}`}
                            edge={edge}
                            isDim={isDim(edge)}
                            isNear={at !== undefined && !isDim(edge)}
                        />
                    ))}
                {graph.nodes.map(node => (
                    <Circle key={node.of.name} node={node} isTransaction={isTransaction(node.of.name)} onOver={setAt} />
                ))}
            </svg>
        </div>
    );
}

function Arrow({ edge: { from, to, probability }, isDim, isNear }: { edge: Edge; isDim: boolean; isNear: boolean }) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy) || 1;
    const bend = to.column > from.column ? 14 : 34 + Math.abs(dx) * 0.12;
    const [cx, cy] = [(from.x + to.x) / 2 - (dy / length) * bend, (from.y + to.y) / 2 + (dx / length) * bend];
    const end = (node: Node, gap: number): [number, number] => {
        const far = Math.hypot(cx - node.x, cy - node.y) || 1;
        return [
            node.x + ((cx - node.x) / far) * (node.radius + gap),
            node.y + ((cy - node.y) / far) * (node.radius + gap),
        ];
    };
    const [[x0, y0], [x1, y1]] = [end(from, 1), end(to, 4)];
    const [lx, ly] = [(x0 + 2 * cx + x1) / 4, (y0 + 2 * cy + y1) / 4];
    return (
        <g class={`edge${isDim ? ' dim' : ''}${to.column <= from.column ? ' back' : ''}`}>
            <title>{`${from.of.name}, then ${to.of.name}: ${percent(probability)}`}</title>
            <path
                d={`M${x0.toFixed(1)} ${y0.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`}
                stroke-width={(1 + probability * 7).toFixed(1)}
                marker-end="url(#arrow)"
            />
            {(probability >= 0.1 || isNear) && (
                <text x={lx} y={ly} dy="3">
                    {percent(probability)}
                </text>
            )}
        </g>
    );
}

function Circle({
    node: { of, x, y, radius, visits },
    isTransaction,
    onOver,
}: {
    node: Node;
    isTransaction: boolean;
    onOver: (name: string | undefined) => void;
}) {
    const again = of.next[of.name] ?? 0;
    const said = `${of.name}: ${number(visits)} visits, worth ${number(of.worth)}`;
    return (
        <a
            href={href('classes', of.name)}
            onMouseEnter={() => onOver(of.name)}
            onMouseLeave={() => onOver(undefined)}
            onFocus={() => onOver(of.name)}
            onBlur={() => onOver(undefined)}
        >
            <title>{said}</title>
            {isTransaction && <circle class="ring" cx={x} cy={y} r={radius + 4} />}
            <circle class={isTransaction ? 'node transaction' : 'node'} cx={x} cy={y} r={radius} />
            <text class="worth" x={x} y={y} dy="4">
                {radius > 18 ? number(of.worth) : ''}
            </text>
            <text class="name" x={x} y={y + radius + 14}>
                {of.name.length > 18 ? `${of.name.slice(0, 17)}…` : of.name}
                {again >= 0.03 ? ` ↻ ${percent(again)}` : ''}
            </text>
        </a>
    );
}
