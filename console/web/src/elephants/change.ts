// The editable parts of a rule: the texts of the fields, and the change that they make. The change
// contains only the fields that differ, so that the other fields keep the values that the gateway
// proposes.
import { spanMs } from '../format';
import type { Change, RuleLimits } from '../shapes';

export interface Edited {
    max_concurrency: string;
    rate: string;
    queue: string;
    wait_s: string;
    bytes: string;
}

export const edited = (of: RuleLimits): Edited => ({
    max_concurrency: String(of.max_concurrency),
    rate: of.rate == null ? '' : String(of.rate),
    queue: String(of.queue),
    wait_s: String((spanMs(of.wait) ?? 0) / 1000),
    bytes: of.bytes == null ? '' : String(of.bytes),
});

export function changeOf(now: Edited, usual: RuleLimits): Change {
    const before = edited(usual);
    const change: Change = {};
    const differs = (field: keyof Edited): number | undefined => {
        const value = Number(now[field].replace(',', '.'));
        return now[field].trim() !== '' && now[field] !== before[field] && Number.isFinite(value) ? value : undefined;
    };
    /** Returns whether the operator has emptied the field, which removes the limit. */
    const isGone = (field: 'rate' | 'bytes'): boolean => before[field] !== '' && now[field].trim() === '';
    const [maxConcurrency, rate, queue, wait, bytes] = [
        differs('max_concurrency'),
        differs('rate'),
        differs('queue'),
        differs('wait_s'),
        differs('bytes'),
    ];
    if (maxConcurrency !== undefined) change.max_concurrency = Math.round(maxConcurrency);
    if (rate !== undefined || isGone('rate')) change.rate = rate ?? null;
    if (queue !== undefined) change.queue = Math.round(queue);
    if (wait !== undefined) change.wait_ms = Math.round(wait * 1000);
    if (bytes !== undefined || isGone('bytes')) change.bytes = bytes === undefined ? null : Math.round(bytes);
    return change;
}

/** The fields of a rule, each with its unit. */
export const FIELDS: readonly { id: keyof Edited; name: string; unit: string; means: string; isLimit?: true }[] = [
    {
        id: 'max_concurrency',
        name: 'Max concurrency',
        unit: 'requests',
        means: 'How many may run at the same time, while no other request waits.',
    },
    {
        id: 'rate',
        name: 'Start rate',
        unit: 'per s',
        means: 'How many may start in a second. An empty field sets no limit.',
        isLimit: true,
    },
    {
        id: 'queue',
        name: 'Max waiting',
        unit: 'requests',
        means: 'How many may wait. Further ones are refused.',
    },
    {
        id: 'wait_s',
        name: 'Max wait',
        unit: 's',
        means: 'A request that would have to wait longer is refused at once.',
    },
    {
        id: 'bytes',
        name: 'Answer bytes',
        unit: 'per s',
        means: 'The bytes of all their answers together in a second. An empty field sets no limit.',
        isLimit: true,
    },
];

const NO_NUMBER = 'Not a number';
const NOT_WHOLE = 'Not a whole number';
const UNCLEAR = 'Ambiguous comma, write decimals with a point';

/** Describes the fields that are not valid numbers. The gateway checks their bounds. */
export function wrongOf(now: Edited): string | undefined {
    const said = [NO_NUMBER, NOT_WHOLE, UNCLEAR].flatMap(why => {
        const wrong = FIELDS.filter(({ id }) => whyNot(id, now[id].trim()) === why);
        return wrong.length > 0 ? [`${why}: ${wrong.map(({ name }) => name).join(', ')}.`] : [];
    });
    return said.join(' ') || undefined;
}

function whyNot(field: keyof Edited, text: string): string | undefined {
    if (text === '') return field === 'rate' || field === 'bytes' ? undefined : NO_NUMBER;
    if (!/^\d+([.,]\d+)?$/.test(text)) return NO_NUMBER;
    if (field !== 'rate' && field !== 'wait_s') return /^\d+$/.test(text) ? undefined : NOT_WHOLE;
    return /,\d{3}$/.test(text) ? UNCLEAR : undefined;
}

export const isChange = (change: Change): boolean => Object.keys(change).length > 0;
