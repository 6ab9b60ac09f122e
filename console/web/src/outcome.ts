// The eight outcomes, in the order in which they are stacked. Each is distinguished without colour
// by a symbol in text and a pattern in areas. docs/reference/log.md explains them.
import type { OutcomeName } from './shapes';

export type Pattern = 'solid' | 'dots' | 'rising' | 'falling' | 'across' | 'upright' | 'cross' | 'checks';

export interface Outcome {
    name: OutcomeName;
    symbol: string;
    pattern: Pattern;
    /** The custom property of the style sheet that has the colour. */
    colour: string;
    means: string;
}

export const OUTCOMES: readonly Outcome[] = [
    { name: 'served', symbol: '●', pattern: 'solid', colour: '--served', means: 'answered in time' },
    {
        name: 'late',
        symbol: '◐',
        pattern: 'dots',
        colour: '--late',
        means: 'answered after the patience of its class',
    },
    {
        name: 'orphaned',
        symbol: '○',
        pattern: 'rising',
        colour: '--orphaned',
        means: 'its client left before the end of the answer',
    },
    { name: 'shed', symbol: '▲', pattern: 'cross', colour: '--shed', means: 'refused before it ran' },
    {
        name: 'expired',
        symbol: '△',
        pattern: 'across',
        colour: '--expired',
        means: 'refused after it had waited as long as a request may',
    },
    {
        name: 'terminated',
        symbol: '■',
        pattern: 'upright',
        colour: '--terminated',
        means: 'stopped while it ran',
    },
    {
        name: 'throttled',
        symbol: '◆',
        pattern: 'falling',
        colour: '--throttled',
        means: 'refused because of a rule',
    },
    {
        name: 'upstream_error',
        symbol: '✕',
        pattern: 'checks',
        colour: '--upstream',
        means: 'no server answered it in full',
    },
];

const byName = new Map<string, Outcome>(OUTCOMES.map(outcome => [outcome.name, outcome]));

export const outcomeOf = (name: string): Outcome | undefined => byName.get(name);

/** The outcomes of requests that were refused, so that no work was spent on them. */
export const REFUSED: readonly OutcomeName[] = ['shed', 'expired', 'throttled'];
