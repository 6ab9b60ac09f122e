// What a trial has shown: how the site was before, for as long as the trial, and meanwhile.
import { type Compared, Comparison } from '../comparison';
import { duration, lasting, percent, perSecond } from '../format';
import { Panel } from '../page';
import type { Gauge, Trial } from '../shapes';

export function TrialOf({ trial, resource, isOn }: { trial: Trial; resource: string; isOn: boolean }) {
    const { before, during, predicted } = trial;
    return (
        <Panel title="The last trial">
            {predicted && (
                <p class="why">
                    Predicted: these requests use at most {percent(predicted.elephants_most)} of {resource},{' '}
                    {percent(predicted.elephants_now)} without the rule.
                </p>
            )}
            {!during && (
                <p>{isOn ? 'It is measured now.' : 'It was ended before it was over: nothing was measured.'}</p>
            )}
            {(during ?? isOn) && (
                <Comparison
                    caption={`For ${lasting(before.seconds * 1000)} before, and ${during ? `${lasting(during.seconds * 1000)} during` : 'during'}`}
                    heads={['Before', 'During']}
                    rows={rows(before, during ?? undefined, resource)}
                />
            )}
        </Panel>
    );
}

function rows(before: Gauge, during: Gauge | undefined, resource: string): Compared[] {
    const of = (
        name: string,
        read: (gauge: Gauge) => number,
        text: Compared['text'],
        better?: 'less' | 'more',
    ): Compared => ({
        name,
        before: read(before),
        after: during && read(during),
        text,
        ...(better ? { better } : {}),
    });
    const seconds = (value: number | undefined): string => duration(value === undefined ? undefined : value * 1000);
    return [
        of('All others: p50', one => one.ants.p50, seconds, 'less'),
        of('All others: p99', one => one.ants.p99, seconds, 'less'),
        of('All others: answered', one => one.ants.answered, perSecond, 'more'),
        of('All others: refused', one => one.ants.refused, perSecond, 'less'),
        // Of what is counted and not read there is no such figure.
        ...(before.used > 0 ? [of(`Use of ${resource}`, one => one.used, percent)] : []),
        of('These: answered', one => one.elephants.answered, perSecond),
        of('These: refused', one => one.elephants.refused, perSecond),
        of('These: p50', one => one.elephants.p50, seconds),
        of('These: p99', one => one.elephants.p99, seconds),
    ];
}
