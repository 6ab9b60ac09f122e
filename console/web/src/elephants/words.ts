// Describes the findings about an elephant in words and with units.
import { visible } from '../visible';
import { bytes, duration, number, percent, perSecond, moment } from '../format';
import type { Elephant, Found, RuleLimits, Rule } from '../shapes';

/** Formats an amount of a resource, in its unit. */
export function amount(of: Found | undefined, value: number): string {
    switch (of?.consists_of) {
        case 'processors':
            return duration(value * 1000);
        case 'slots':
            return duration(value * 1000);
        case 'bytes':
            return bytes(value);
        default:
            return `${number(value)} units`;
    }
}

/**
 * Returns whether the use of the resource is counted from requests and not estimated. That is so
 * for slots and bytes.
 */
export const isCounted = (of: Found): boolean => of.resource === 'slots' || of.resource === 'bytes';

export const intervalText = (of: Found): string =>
    isCounted(of)
        ? 'counted'
        : of.interval[0] === of.interval[1]
          ? 'provisional, no interval yet'
          : `${amount(of, of.interval[0] ?? 0)} to ${amount(of, of.interval[1] ?? 0)}`;

/** Returns the fraction of the resource's capacity that the elephant's requests use. */
export const ofCapacity = (of: Found): number => (of.capacity > 0 ? (of.cost * of.rate) / of.capacity : 0);

export const ruleOf = (one: Elephant): Rule | undefined =>
    typeof one.state === 'object' && 'ruled' in one.state ? one.state.ruled : undefined;

export type StateKind = 'proposed' | 'rejected' | 'held' | 'trial';
export const kindOf = (one: Elephant): StateKind => {
    const rule = ruleOf(one);
    return rule ? (rule.origin === 'trial' ? 'trial' : 'held') : one.state === 'proposed' ? 'proposed' : 'rejected';
};

const ORIGINS: Record<Rule['origin'], string> = {
    operator: 'held back',
    trial: 'tried',
    auto: 'held back (auto)',
    file: 'held back (file)',
};
export const stateWord = (one: Elephant): string => {
    const rule = ruleOf(one);
    return rule ? ORIGINS[rule.origin] : one.state === 'proposed' ? 'proposed' : 'rejected';
};

/** Describes the decision in force, with its author, its reason and its end. */
export function stateText(one: Elephant, now: number): string {
    const rule = ruleOf(one);
    if (rule) {
        const until = rule.until ? `until ${moment(Date.parse(rule.until), now)}` : 'as long as the file has it';
        return `${stateWord(one)} by ${visible(rule.by)} since ${moment(Date.parse(rule.since), now)}, ${until}${rule.why ? `: “${visible(rule.why)}”` : ''}. ${limitsText(rule.limits)}`;
    }
    if (typeof one.state === 'object' && 'rejected' in one.state) {
        const { meta, until } = one.state.rejected;
        return `rejected by ${visible(meta.by)} until ${moment(Date.parse(until), now)}: “${visible(meta.why)}”.`;
    }
    const leftAlone = one.left_alone == null ? 0 : Date.parse(one.left_alone);
    if (leftAlone > now)
        return `proposed: the last decision was undone. No rule is in force, and until ${moment(leftAlone, now)} none begins without an operator’s approval.`;
    return `proposed: ${one.revision > 0 ? 'the last decision has ended' : 'no operator has decided yet'}, and no rule is in force.`;
}

export function limitsText(of: RuleLimits): string {
    const parts = [
        `At most ${of.max_concurrency} run at the same time`,
        `up to ${of.queue} wait`,
        `each for at most ${of.wait}`,
    ];
    if (of.rate != null) parts.push(`up to ${perSecond(of.rate)} start`);
    if (of.bytes != null) parts.push(`all answers together get up to ${bytes(of.bytes)}/s`);
    return `${parts.join(', ')}.`;
}

/**
 * Returns the patterns of the routes any of which may cause the load: the elephant's own, and those
 * that always occur together with it.
 */
export const names = (one: Elephant): string[] => [
    one.pattern,
    ...(one.found?.twins ?? []).filter(twin => twin !== one.pattern),
];

/** Returns the evidence for the finding and against it, in sentences. */
export function evidence(of: Found): string[] {
    const said = [
        `One request uses ${amount(of, of.cost)} of ${of.resource} (${isCounted(of) ? 'counted, not estimated' : of.interval[0] === of.interval[1] ? intervalText(of) : `95 % interval: ${intervalText(of)}`}). With ${perSecond(of.rate)}, these requests use ${percent(ofCapacity(of))} of its capacity, which is ${percent(of.share)} of its use.`,
        `All requests together recently used ${percent(of.used)} of the capacity of ${of.resource}.`,
        `One request takes ${duration((of.lasts ?? 0) * 1000)} on average${of.consists_of === 'processors' ? plausible(of) : ''}.`,
        `${ofOne(of)} of their service time.`,
    ];
    if (of.provisional)
        said.push('Provisional: measured for less than 15 min. The costs are more likely too low than too high.');
    if (of.transacts) said.push('Some of them are transactions, which no rule holds back.');
    if (of.correlation)
        said.push(
            `Correlation of their rate with the use of the resource: r = ${number(of.correlation[0])}, p = ${number(of.correlation[1])}.`,
        );
    return said;
}

function ofOne({ by_one, one_client }: Found): string {
    const most = percent(by_one);
    if (!one_client) return `No client causes more than ${most}`;
    const least = percent(one_client.at_least);
    return `${one_client.address} causes ${least === most ? most : `${least} to ${most}`}`;
}

const plausible = (of: Found): string =>
    of.cost <= (of.lasts ?? 0)
        ? ', so it can use that much by itself'
        : '. It cannot use that much by itself in that time: something else happens at the same time, or work continues after its answer';
