// The state of the site before a rule and under it, as the gateway has measured it, line by line.
import type { Compared } from '../comparison';
import { duration, percent, perSecond } from '../format';
import type { Gauge } from '../shapes';

export function gaugeRows(before: Gauge | undefined, after: Gauge | undefined, resource: string): Compared[] {
    const of = (
        name: string,
        read: (gauge: Gauge) => number | null | undefined,
        text: Compared['text'],
        better?: 'less' | 'more',
    ): Compared => ({
        name,
        before: (before && read(before)) ?? undefined,
        after: (after && read(after)) ?? undefined,
        text,
        ...(better ? { better } : {}),
    });
    const seconds = (value: number | undefined): string => duration(value === undefined ? undefined : value * 1000);
    return [
        of('All others: p50', one => one.ants.p50, seconds, 'less'),
        of('All others: p99', one => one.ants.p99, seconds, 'less'),
        of('All others: answered', one => one.ants.answered, perSecond, 'more'),
        of('All others: not answered', one => one.ants.refused, perSecond, 'less'),
        // A resource that is counted and not read has no such figure.
        ...(before?.used != null ? [of(`Use of ${resource}`, one => one.used, percent)] : []),
        of('These: answered', one => one.elephants.answered, perSecond),
        of('These: not answered', one => one.elephants.refused, perSecond),
        of('These: p50', one => one.elephants.p50, seconds),
        of('These: p99', one => one.elephants.p99, seconds),
    ];
}
