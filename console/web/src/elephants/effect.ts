// Describes the effect of a rule in one sentence: how all other requests fare under it. There is no
// verdict until the requests that waited before the rule are answered, and none from few requests.
import { duration, lasting, percent, perSecond } from '../format';
import type { Elephant, Gauge, ResponseStats, Rule } from '../shapes';
import { ruleOf } from './words';

/**
 * The bounds in seconds of the settling time. After this time, approximately no request that waited
 * before the rule is still waiting. The settling time is three times the p99 of the other requests
 * before the rule.
 */
const [LEAST, MOST] = [30, 60];
/**
 * The relative change of response times below which nothing has changed (`SAME`), and the change of
 * the answered fraction below which nothing has changed (`SAME_PART`).
 */
const [SAME, SAME_PART] = [0.2, 0.05];
/** The number of requests below which there is no verdict. */
const FEW = 20;

export interface Verdict {
    kind: 'settling' | 'better' | 'worse' | 'same' | 'unknown';
    text: string;
}

/**
 * Compares the measurement before a rule with the one under it. `held` is the number of seconds for
 * which the rule has been in force. `others` says whether another rule has begun or ended since the
 * first measurement began.
 */
export function verdict(before: Gauge | undefined, under: Gauge | undefined, held: number, others = false): Verdict {
    if (before === undefined || before.seconds === 0)
        return { kind: 'unknown', text: 'The time before this rule was not measured, so there is no comparison.' };
    const settled = Math.min(MOST, Math.max(LEAST, 3 * (before.ants.p99 ?? 0)));
    if (held < settled)
        return {
            kind: 'settling',
            text: `Too early to compare: requests that had waited before the rule are still being answered. The comparison begins in ${lasting((settled - held) * 1000)}.`,
        };
    if (under === undefined || ended(before, 'ants') < FEW || ended(under, 'ants') < FEW)
        return { kind: 'unknown', text: 'Too few other requests have come for a comparison.' };
    const [was, is] = [before.ants, under.ants];
    if (!was.p99 || !is.p99)
        return { kind: 'unknown', text: 'Of the other requests, before the rule or under it, none was answered.' };
    const [these, theseNow] = [part(before.elephants), part(under.elephants)];
    const ofThese =
        these === undefined || theseNow === undefined
            ? ''
            : ` Of the requests under the rule, ${percent(theseNow)} were answered (before: ${percent(these)})${halves(before.elephants, under.elephants)}.`;
    const also = others ? ' Another rule has begun or ended meanwhile, and affects the other requests too.' : '';
    const text = `of all other requests, ${told(is)} (before: ${told(was)}).${ofThese}${also}`;
    const more = (part(is) ?? 0) - (part(was) ?? 0);
    const slower = is.p99 / was.p99 - 1;
    // The answered fraction counts first, then how soon the answers come.
    const gain = Math.abs(more) > SAME_PART ? more : Math.abs(slower) > SAME ? -slower : 0;
    const helps = more > SAME_PART && slower > SAME ? 'More requests get through, but later' : 'The rule helps';
    if (gain > 0) return { kind: 'better', text: `${helps}: ${text}` };
    if (gain < 0)
        return { kind: 'worse', text: `Other requests do worse: ${text} Something else may use the resource.` };
    const isMuch = ended(before, 'elephants') >= FEW && ended(under, 'elephants') >= FEW;
    if (isMuch && (these ?? 0) - (theseNow ?? 0) > SAME_PART)
        return { kind: 'worse', text: `The rule helps no other requests, and holds these back: ${text}` };
    return { kind: 'same', text: `The rule changes little: ${text}` };
}

/**
 * Returns whether a rule for other requests has begun or ended since the start of the measurement
 * before this rule. Such a rule affects all requests, so that the comparison is not only of this
 * rule.
 */
export function isDisturbed(number: number, { since, before }: Rule, others: readonly Elephant[]): boolean {
    const begun = Date.parse(before?.at ?? since) - (before?.seconds ?? 0) * 1000;
    const isLater = (at: string | undefined): boolean => at !== undefined && Date.parse(at) > begun;
    return others.some(one => one.number !== number && (isLater(ruleOf(one)?.since) || isLater(one.ended?.at)));
}

const ended = (of: Gauge, who: 'ants' | 'elephants'): number => (of[who].answered + of[who].refused) * of.seconds;
const part = ({ answered, refused }: ResponseStats): number | undefined =>
    answered + refused > 0 ? answered / (answered + refused) : undefined;
const told = (of: ResponseStats): string =>
    `${percent(part(of))} were answered, ${perSecond(of.answered)}, 99 of 100 within ${duration((of.p99 ?? 0) * 1000)}`;
/**
 * Describes the median response times before and under the rule. They are the cost of the rule to
 * the requests that wait.
 */
const halves = (was: ResponseStats, is: ResponseStats): string =>
    was.p50 && is.p50 ? `, half of them within ${duration(is.p50 * 1000)} (before: ${duration(was.p50 * 1000)})` : '';
