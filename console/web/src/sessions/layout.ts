// Computes the positions of classes in the graph of sessions. Columns lead from the class where
// most sessions begin to the transactions, which are on the right. Within a column, the most
// visited classes are in the middle.
import type { ClassLearned } from '../shapes';

export interface Node {
    of: ClassLearned;
    visits: number;
    column: number;
    x: number;
    y: number;
    radius: number;
}

export interface Edge {
    from: Node;
    to: Node;
    probability: number;
}

export interface Graph {
    nodes: Node[];
    edges: Edge[];
    width: number;
    height: number;
}

const LEAST = 0.03;
const [GAP_X, GAP_Y, LARGEST, SMALLEST] = [170, 96, 30, 9];

export function layout(classes: readonly ClassLearned[], isTransaction: (name: string) => boolean): Graph {
    const known = classes.filter(one => one.first_visits + one.later_visits > 0);
    const steps = columns(known, isTransaction);
    const most = Math.max(1, ...known.map(visitsOf));
    const byColumn = new Map<number, ClassLearned[]>();
    for (const one of known)
        byColumn.set(steps.get(one.name) ?? 0, [...(byColumn.get(steps.get(one.name) ?? 0) ?? []), one]);
    const height = Math.max(1, ...[...byColumn.values()].map(list => list.length)) * GAP_Y + 60;
    const nodes = [...byColumn].flatMap(([column, list]) =>
        fromTheMiddle(list.sort((a, b) => visitsOf(b) - visitsOf(a))).map((of, at): Node => {
            const visits = visitsOf(of);
            const y = height / 2 + (at - (list.length - 1) / 2) * GAP_Y + (column % 2 ? GAP_Y / 6 : -GAP_Y / 6);
            return {
                of,
                visits,
                column,
                x: 70 + column * GAP_X,
                y,
                radius: SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(visits / most),
            };
        }),
    );
    const byName = new Map(nodes.map(node => [node.of.name, node]));
    const edges = nodes.flatMap(from =>
        Object.entries(from.of.next).flatMap(([name, probability]): Edge[] => {
            const to = byName.get(name);
            return to && probability >= LEAST ? [{ from, to, probability }] : [];
        }),
    );
    return { nodes, edges, width: 140 + GAP_X * Math.max(0, ...nodes.map(node => node.column)), height };
}

export const visitsOf = (of: ClassLearned): number => of.first_visits + of.later_visits;

/**
 * Returns the column of each class: its number of transitions from the class where most sessions
 * begin. The classes of transactions come after all others.
 */
function columns(known: readonly ClassLearned[], isTransaction: (name: string) => boolean): Map<string, number> {
    const steps = new Map<string, number>();
    const browsing = known.filter(one => !isTransaction(one.name));
    const begin = [...(browsing.length ? browsing : known)].sort((a, b) => b.first_visits - a.first_visits)[0];
    walk(begin ? [begin] : [], 0, browsing, steps);
    for (const one of browsing) if (!steps.has(one.name)) steps.set(one.name, 0);
    const transactions = known.filter(one => isTransaction(one.name));
    const base = browsing.length ? Math.max(...steps.values()) + 1 : 0;
    const from = (name: string): number =>
        known.reduce((sum, one) => sum + (transactions.includes(one) ? 0 : (one.next[name] ?? 0) * visitsOf(one)), 0);
    const first = [...transactions].sort((a, b) => from(b.name) - from(a.name))[0];
    walk(first ? [first] : [], base, transactions, steps);
    for (const one of transactions) if (!steps.has(one.name)) steps.set(one.name, base);
    return steps;
}

/**
 * Writes the distance of each class of `among` to `steps`, by a breadth-first search along the more
 * probable transitions. The classes of `begin` get the distance `step`.
 */
function walk(
    begin: readonly ClassLearned[],
    step: number,
    among: readonly ClassLearned[],
    steps: Map<string, number>,
): void {
    const fresh = begin.filter(one => !steps.has(one.name));
    for (const one of fresh) steps.set(one.name, step);
    if (fresh.length === 0) return;
    walk(
        among.filter(one => fresh.some(other => (other.next[one.name] ?? 0) >= 2 * LEAST)),
        step + 1,
        among,
        steps,
    );
}

/**
 * Returns the list with its first element in the middle, and the following ones alternately before
 * and after it.
 */
function fromTheMiddle<T>(list: readonly T[]): T[] {
    const placed: T[] = [];
    list.forEach((one, at) => (at % 2 ? placed.unshift(one) : placed.push(one)));
    return placed;
}
