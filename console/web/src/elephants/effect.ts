// What a rule has done, in one sentence: how all others fare under it, and what these requests get. Nothing is said until
// what had waited before the rule is answered.
import { lasting, perSecond, duration } from '../format';
import type { Gauge } from '../shapes';

/** Seconds after which nothing has waited since before the rule, about. */
export const SETTLED = 30;
/** Less than that is as before. */
const SAME = 0.2;

export interface Verdict {
    /** As of marks: how it is. */
    kind: 'settling' | 'better' | 'worse' | 'same' | 'unknown';
    text: string;
}

export function verdict(before: Gauge | undefined, under: Gauge | undefined): Verdict {
    const passed = under?.seconds ?? 0;
    if (passed < SETTLED)
        return {
            kind: 'settling',
            text: `Too early to say: requests that had waited before the rule still get their answers. In ${lasting((SETTLED - passed) * 1000)} the two can be compared.`,
        };
    const [was, is] = [before?.ants, under?.ants];
    if (was?.p99 == null || is?.p99 == null)
        return {
            kind: 'unknown',
            text:
                was === undefined
                    ? 'How it was before this rule was not measured.'
                    : `No other request was answered in the minute ${was.p99 == null ? 'before the rule' : 'that is over'}: there is nothing to compare.`,
        };
    const [slower, fewer] = [is.p99 / was.p99 - 1, was.answered > 0 ? 1 - is.answered / was.answered : 0];
    const text = `99 of 100 others are answered within ${ms(is.p99)} (${ms(was.p99)} before), ${perSecond(is.answered)} (${perSecond(was.answered)} before).`;
    if (slower > SAME || (fewer > SAME && is.refused > was.refused))
        return {
            kind: 'worse',
            text: `Others fare no better: ${text} It may be another that fills it: undo it, or look again.`,
        };
    if (slower < -SAME || fewer < -SAME) return { kind: 'better', text: `It helps: ${text}` };
    return { kind: 'same', text: `It changes little: ${text}` };
}

const ms = (seconds: number): string => duration(seconds * 1000);
