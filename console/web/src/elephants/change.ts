// What of a rule is edited: texts as they stand in the fields, and the change that they make. Only what differs is
// said, so that what nobody touched stays what the gateway proposes.
import { spanMs } from '../format';
import type { Change, Grants } from '../shapes';

export interface Edited {
    at_once: string;
    rate: string;
    queue: string;
    wait_s: string;
    bytes: string;
}

export const edited = (of: Grants): Edited => ({
    at_once: String(of.at_once),
    rate: of.rate == null ? '' : String(of.rate),
    queue: String(of.queue),
    wait_s: String((spanMs(of.wait) ?? 0) / 1000),
    bytes: of.bytes == null ? '' : String(of.bytes),
});

export function changeOf(now: Edited, usual: Grants): Change {
    const before = edited(usual);
    const change: Change = {};
    const differs = (field: keyof Edited): number | undefined => {
        const value = Number(now[field].replace(',', '.'));
        return now[field].trim() !== '' && now[field] !== before[field] && Number.isFinite(value) ? value : undefined;
    };
    /** A limit that was emptied is to be none. */
    const isGone = (field: 'rate' | 'bytes'): boolean => before[field] !== '' && now[field].trim() === '';
    const [atOnce, rate, queue, wait, bytes] = [
        differs('at_once'),
        differs('rate'),
        differs('queue'),
        differs('wait_s'),
        differs('bytes'),
    ];
    if (atOnce !== undefined) change.at_once = Math.round(atOnce);
    if (rate !== undefined || isGone('rate')) change.rate = rate ?? null;
    if (queue !== undefined) change.queue = Math.round(queue);
    if (wait !== undefined) change.wait_ms = Math.round(wait * 1000);
    if (bytes !== undefined || isGone('bytes')) change.bytes = bytes === undefined ? null : Math.round(bytes);
    return change;
}

const NAMES: Record<keyof Edited, string> = {
    at_once: 'At once',
    rate: 'Start',
    queue: 'May wait',
    wait_s: 'For up to',
    bytes: 'Bytes',
};

/** What is no number where one is needed; the gateway knows what is too much. */
export function wrongOf(now: Edited): string | undefined {
    const isWrong = (field: keyof Edited): boolean => {
        const text = now[field].trim();
        if (text === '') return field !== 'rate' && field !== 'bytes';
        if (field !== 'rate' && field !== 'wait_s') return !/^\d+$/.test(text);
        // A comma before three digits may be meant for thousands.
        return !/^\d+([.,]\d+)?$/.test(text) || /,\d{3}$/.test(text);
    };
    const wrong = (Object.keys(NAMES) as (keyof Edited)[]).filter(isWrong).map(field => NAMES[field]);
    return wrong.length > 0 ? `Not a number: ${wrong.join(', ')}.` : undefined;
}

export const isChange = (change: Change): boolean => Object.keys(change).length > 0;
