// The list of things that need attention: decisions to take and broken parts, the worst first.
import { visible } from './visible';
import { count, lasting, percent } from './format';
import type { Word } from './pulse';
import type { Rows } from './rows';
import type { Elephant, Elephants, Override, Policy, Status } from './shapes';
import { sums } from './sums';
import { href } from './view';

export interface Need {
    kind: 'bad' | 'asks';
    text: string;
    href?: string;
    does?: string;
}

const SOON = 5 * 60_000;
/** The time in ms after its last finding for which an elephant is still proposed. */
const LATELY = 15 * 60_000;

export function attention(
    status: Status | undefined,
    elephants: Elephants | undefined,
    policy: Policy | undefined,
    now: number,
    refused: number,
): Need[] {
    return [
        ...ofGateway(status),
        ...ofOrders(refused),
        ...ofResources(elephants),
        ...ofElephants(elephants, now),
        ...ofOverrides(policy, now),
    ];
}

/** Returns the number of transactions that were refused or waited too long in the last minute. */
export function ordersRefused(status: Status | undefined, rows: Rows): number {
    const names = status?.classes.filter(one => one.tier === 'transaction').map(one => one.name) ?? [];
    const from = rows.since(60);
    return names.reduce((sum, name) => {
        const { outcomes } = sums(rows, rows.class(name), from);
        return sum + outcomes.shed + outcomes.expired;
    }, 0);
}

const ofOrders = (refused: number): Need[] =>
    refused > 0
        ? [
              {
                  kind: 'bad',
                  text: `${count(refused)} transactions were shed or expired in the last 60 s. Either orders alone exceed the capacity, or other requests hold the slots.`,
                  href: href('elephants'),
                  does: 'What holds the slots',
              },
          ]
        : [];

/** Explains why nobody needs to act, although requests wait or are refused. */
export function whyNothing(word: Word | undefined, isShadow: boolean): string {
    if (word === 'REFUSING')
        return isShadow
            ? 'Nothing needs attention. If classes were enforced, the gateway would refuse the requests that rank lowest, and the others would get through.'
            : 'Nothing needs attention. More requests arrive than the application can serve. The gateway refuses those that rank lowest, and the others get through.';
    if (word === 'QUEUEING') return 'Nothing needs attention. Requests wait for a slot, and none is refused.';
    return 'Nothing needs attention.';
}

function ofGateway(status: Status | undefined): Need[] {
    if (!status) return [];
    const list: Need[] = [];
    if (status.draining)
        list.push({
            kind: 'bad',
            text: 'The gateway is shutting down: it finishes the requests that it has and accepts no new ones.',
        });
    for (const one of status.servers)
        if (one.state !== 'up')
            list.push({
                kind: 'bad',
                text: `Server ${one.server} is ${one.state}: ${count(one.failures)} failures in a row, and ${count(one.connect_failures)} failed connections since the gateway started.`,
            });
    const cookie = status.session_cookie?.warning;
    if (cookie)
        list.push({
            kind: 'bad',
            text: `The gateway cannot tell sessions apart: ${visible(cookie)}.`,
            href: href('sessions'),
            does: 'Sessions',
        });
    if (status.access_log_dropped > 0)
        list.push({
            kind: 'bad',
            text: `${count(status.access_log_dropped)} lines of the access log could not be written since the gateway started.`,
        });
    return list;
}

const ofResources = (elephants: Elephants | undefined): Need[] =>
    (elephants?.resources ?? []).flatMap(one =>
        one.trouble
            ? [
                  {
                      kind: 'bad' as const,
                      text: `Resource ${one.name} cannot be read: ${visible(one.trouble)}`,
                      href: href('elephants'),
                      does: 'Elephants',
                  },
              ]
            : [],
    );

/**
 * Returns the elephants that need a decision. Elephants that are listed because an operator named
 * them are left out, since that operator knows about them.
 */
export const proposals = (elephants: Elephants | undefined, now: number): Elephant[] =>
    (elephants?.elephants ?? []).filter(
        one =>
            one.state === 'proposed' &&
            one.found &&
            !one.found.transacts &&
            !one.asked &&
            now - Date.parse(one.seen) < LATELY,
    );

function ofElephants(elephants: Elephants | undefined, now: number): Need[] {
    return proposals(elephants, now).map(one => ({
        kind: 'asks',
        text: `Elephant ${one.number}: requests for ${visible(one.pattern)} recently caused ${percent(one.found?.share)} of the use of ${one.found?.resource}. ${whose(one)}. Decide whether a rule should hold them back.`,
        href: href('elephants', one.number),
        does: 'Decide',
    }));
}

/**
 * Describes whether the requests come from one client or from many. A crawler calls for another
 * decision than requests that all visitors make.
 */
const whose = ({ found }: Elephant): string => {
    const most = percent(found?.by_one);
    const one = found?.one_client;
    if ((found?.by_one ?? 0) <= FEW)
        return `They come from many clients: none causes more than ${most} of their service time`;
    if (one && one.at_least >= 0.5) return `One client (${one.address}) causes most of their service time`;
    return `One client${one ? ` (${one.address})` : ''} causes up to ${most} of their service time`;
};
/**
 * The fraction of the elephant's service time up to which no single client stands out. If one
 * client may cause more, no rule begins without an operator's approval (`AUTO_MAX_CLIENT_SHARE` in
 * `crates/control`).
 */
const FEW = 0.3;

function ofOverrides(policy: Policy | undefined, now: number): Need[] {
    const ends = (policy?.overrides ?? [])
        .map(one => ({ one, left: Date.parse(one.until) - now }))
        .filter(({ left }) => left < SOON);
    const list: Need[] = ends.map(({ one, left }) => ({
        kind: 'asks',
        text: `${overrideText(one)} ends in ${lasting(left)}.`,
        href: href('policy'),
        does: 'Policy',
    }));
    if (policy && policy.bypassed && !policy.overrides.some(one => one.target === 'bypass'))
        list.push({
            kind: 'asks',
            text: 'The gateway is bypassed since it started: it makes no decisions.',
            href: href('policy'),
            does: 'Policy',
        });
    return list;
}

export const overrideText = (one: Override): string =>
    one.target === 'bypass'
        ? `The bypass (by ${visible(one.by)})`
        : 'population' in one.target
          ? `The level of a population (by ${visible(one.by)})`
          : `The override of class ${one.target.class.class} (${one.target.class.mode} for ${one.target.class.enforce_percent} % of visitors, by ${visible(one.by)})`;
