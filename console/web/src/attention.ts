// What needs a person: what to decide, and what is broken. The worst first.
import { visible } from './visible';
import { count, lasting, percent } from './format';
import { href } from './route';
import type { Elephants, Override, Policy, Status } from './shapes';

export interface Need {
    kind: 'bad' | 'asks';
    text: string;
    href?: string;
    does?: string;
}

const SOON = 5 * 60_000;

export function attention(
    status: Status | undefined,
    elephants: Elephants | undefined,
    policy: Policy | undefined,
    now: number,
): Need[] {
    return [...ofGateway(status), ...ofResources(elephants), ...ofElephants(elephants), ...ofOverrides(policy, now)];
}

function ofGateway(status: Status | undefined): Need[] {
    if (!status) return [];
    const list: Need[] = [];
    if (status.draining)
        list.push({
            kind: 'bad',
            text: 'The gateway has been told to end: it answers what runs and takes nothing new.',
        });
    for (const one of status.servers)
        if (one.state !== 'up')
            list.push({
                kind: 'bad',
                text: `Server ${one.server} is ${one.state}: ${count(one.failures)} failures in a row, ${count(one.connect_failures)} failed connections since the start.`,
            });
    if (status.access_log_dropped > 0)
        list.push({
            kind: 'bad',
            text: `${count(status.access_log_dropped)} lines of the access log could not be written since the start.`,
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

function ofElephants(elephants: Elephants | undefined): Need[] {
    const proposed = (elephants?.elephants ?? []).filter(one => one.state === 'proposed' && one.found);
    return proposed.map(one => ({
        kind: 'asks',
        text: `Elephant ${one.number}: requests for ${visible(one.pattern)} make ${percent(one.found?.share)} of the use of ${one.found?.resource} (last 15 min). Should they be held back?`,
        href: href('elephants', one.number),
        does: 'Decide',
    }));
}

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
            text: 'Nothing is decided: the gateway was started so.',
            href: href('policy'),
            does: 'Policy',
        });
    return list;
}

export const overrideText = (one: Override): string =>
    one.target === 'bypass'
        ? `The bypass (${visible(one.by)})`
        : `Class ${one.target.class.class}: ${one.target.class.mode} for ${one.target.class.percent} % of visitors (${visible(one.by)})`;
