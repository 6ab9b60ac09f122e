// The result of a trial: the state of the site before the trial, over a period as long as the
// trial, and during the trial.
import { Comparison } from '../comparison';
import { lasting, percent } from '../format';
import { Panel } from '../page';
import type { Trial } from '../shapes';
import { gaugeRows } from './gauges';

const unmeasured = ({ during }: Trial): string =>
    during
        ? 'The trial was not measured: it ended while the gateway did not run, or another decision replaced it.'
        : 'The trial was not measured: it was ended early.';

export function TrialOf({ trial, resource, isOn }: { trial: Trial; resource: string; isOn: boolean }) {
    const { before, predicted } = trial;
    // A trial that ended while no gateway ran was not measured.
    const during = trial.during && trial.during.seconds > 0 ? trial.during : undefined;
    return (
        <Panel title="The last trial">
            {predicted && (
                <p class="why">
                    Predicted: these requests use at most {percent(predicted.elephants_most)} of {resource},{' '}
                    {percent(predicted.elephants_now)} without the rule.
                </p>
            )}
            {!during && <p>{isOn ? 'The trial is being measured.' : unmeasured(trial)}</p>}
            {(during ?? isOn) && (
                <Comparison
                    caption={`${before.seconds > 0 ? `${lasting(before.seconds * 1000)} before the trial` : 'Not measured before the trial'}, and ${during ? `${lasting(during.seconds * 1000)} ` : ''}during it`}
                    heads={['Before', 'During']}
                    rows={gaugeRows(before.seconds > 0 ? before : undefined, during, resource)}
                />
            )}
        </Panel>
    );
}
