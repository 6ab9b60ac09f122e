// Describes, in sentences, the effect that mode enforce would have had on requests that were only
// observed.
import { count, percent } from '../format';
import type { Sums } from '../sums';

export interface Shadowed {
    all: number;
    run: number;
    refused: number;
    stopped: number;
    waiting: number;
}

export const shadowed = ({ shadow }: Sums): Shadowed => ({
    ...shadow,
    all: shadow.run + shadow.refused + shadow.stopped + shadow.waiting,
});

/**
 * Returns one sentence for each class that enforcing would have affected, and one sentence for all
 * other classes.
 */
export function sentences(classes: readonly (readonly [string, Shadowed])[], window: string): string[] {
    const isCalm = (of: Shadowed): boolean => of.refused + of.stopped + of.waiting === 0;
    const calm = classes.filter(([, of]) => isCalm(of));
    const all = calm.reduce((sum, [, of]) => sum + of.all, 0);
    const said = classes.filter(([, of]) => !isCalm(of)).map(([name, of]) => sentence(name, of, window));
    if (calm.length > 0)
        said.push(
            `${calm.map(([name]) => name).join(', ')}: all ${count(all)} requests in the ${window} would have run as they did.`,
        );
    return said;
}

function sentence(name: string, of: Shadowed, window: string): string {
    const part = (requests: number): string => percent(requests / of.all);
    return `Class ${name}: of ${count(of.all)} requests in the ${window}, mode enforce would have let ${count(of.run)} run, refused ${count(of.refused)} (${part(of.refused)}), stopped ${count(of.stopped)} (${part(of.stopped)}) and left ${count(of.waiting)} waiting (${part(of.waiting)}).`;
}
