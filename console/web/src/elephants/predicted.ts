// Describes the predicted effect of a rule in one sentence.
import { percent, perSecond } from '../format';
import type { Effect, Found, RuleLimits } from '../shapes';

/**
 * The average utilisation of a rule's slots (0 to 1) above which some requests find all of them
 * taken.
 */
const MUCH = 0.5;

/**
 * Returns the maximum use under the rule, as a fraction of the resource's capacity. A rule never
 * increases the use.
 */
export const mostOf = (effect: Effect): number => Math.min(effect.elephants_now, effect.elephants_most);

export function predictedText(
    found: Found,
    effect: Effect,
    { max_concurrency }: Pick<RuleLimits, 'max_concurrency'>,
): string {
    const use = `These requests recently used ${percent(effect.elephants_now)} of ${found.resource}. Under the rule, they use ${percent(mostOf(effect))} at most`;
    if (effect.held_back > 0)
        return `${use}, and at least ${perSecond(effect.held_back)} of ${perSecond(found.rate)} would wait longer or be refused.`;
    // Each request keeps its place under the rule for its whole duration, whatever it waits for.
    const ran = (found.rate * (found.lasts ?? 0)) / max_concurrency;
    const used = effect.elephants_most > 0 ? effect.elephants_now / effect.elephants_most : 0;
    const taken = Math.min(1, Math.max(ran, used));
    return taken > MUCH
        ? `${use}. On average, they would take ${percent(taken)} of what the rule allows, so some would wait.`
        : `${use}. The rule would hold hardly any back.`;
}
