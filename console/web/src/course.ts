// The rows of a time range: the last 15 minutes from the event stream, or the last 24 hours, which
// are fetched once a minute.
import { useEffect, useState } from 'preact/hooks';
import { useDocument } from './document';
import { rows, tick } from './live';
import { Rows } from './rows';
import type { Columns } from './shapes';
import { use } from './signal';
import { inSlices } from './slices';

export const RANGES = ['15m', '24h'] as const;
export type Range = (typeof RANGES)[number];
export const RANGE_TEXT: Record<Range, string> = { '15m': 'last 15 min, by second', '24h': 'last 24 h, by minute' };
export const rangeNamed = (name: string | undefined): Range => (name === '24h' ? '24h' : '15m');

const MINUTES = 1440;

export function useCourse(range: Range): { rows: Rows; version: number } {
    const seconds = use(tick);
    const [day] = useState(() => new Rows(MINUTES));
    const isDay = range === '24h';
    const read = useDocument('/v1/history', { query: { range: '24h' }, every: 60_000, skip: !isDay });
    const [seen, setSeen] = useState<unknown>();
    useEffect(() => {
        if (!read.value || read.value === seen) return;
        const { value } = read;
        // Without `window`, the document has rows.
        void inSlices(day.renewing(value as Columns)).then(() => setSeen(value));
    }, [read.value]);
    return isDay ? { rows: day, version: day.version } : { rows, version: seconds };
}
