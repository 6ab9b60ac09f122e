// The panel with the effect of enforcing the observed classes: the decisions that the gateway
// recorded for their requests and did not carry out.
import { Chart, type Series } from '../chart';
import { useMemo } from 'preact/hooks';
import { axis, seconds } from '../axis';
import { RANGE_TEXT, type Range, RANGES } from '../course';
import { count, percent, perSecond } from '../format';
import { Choice, Panel } from '../page';
import type { Rows } from '../rows';
import { SHADOW_NAMES } from '../rows';
import type { Policy } from '../shapes';
import { sums, WINDOW_TEXT } from '../sums';
import { href } from '../view';
import { shadowed, sentences } from './shadow';

interface Properties {
    policy: Policy;
    rows: Rows;
    version: number;
    range: Range;
}

export function WouldChange({ policy, rows, version, range }: Properties) {
    const isObserved = policy.classes.some(one => one.mode === 'observe' || one.enforce_percent < 100);
    const shown = useMemo(
        () =>
            policy.classes
                .map(one => ({ one, of: shadowed(sums(rows, rows.class(one.name), 0)) }))
                .filter(({ of }) => of.all > 0),
        [policy, rows, version],
    );
    return (
        <Panel
            title="What would change"
            aside={<Choice label="Range" at={range} of={RANGES} to={range => href('policy', undefined, { range })} />}
        >
            {!isObserved && <p>Nothing would change: every class is enforced for all visitors.</p>}
            {isObserved && shown.length === 0 && (
                <p>No data yet: no request was only observed in the {WINDOW_TEXT[range]}.</p>
            )}
            {shown.length > 0 && (
                <>
                    <ul class="sentences">
                        {sentences(
                            shown.map(({ one, of }) => [one.name, of] as const),
                            WINDOW_TEXT[range],
                        ).map(text => (
                            <li key={text}>{text}</li>
                        ))}
                    </ul>
                    <ShadowChart rows={rows} version={version} range={range} />
                    <p class="note">
                        This is an estimate: clients of refused requests may retry, and the others may send more
                        requests. In total, the gateway would have refused{' '}
                        {count(shown.reduce((sum, { of }) => sum + of.refused, 0))} of{' '}
                        {count(shown.reduce((sum, { of }) => sum + of.all, 0))} requests (
                        {percent(
                            shown.reduce((sum, { of }) => sum + of.refused, 0) /
                                shown.reduce((sum, { of }) => sum + of.all, 0),
                        )}
                        ).
                    </p>
                </>
            )}
        </Panel>
    );
}

const LOOKS = {
    run: ['--served', 'solid', '●', 'run'],
    refused: ['--shed', 'cross', '▲', 'refused'],
    stopped: ['--terminated', 'upright', '■', 'stopped'],
    waiting: ['--late', 'dots', '◐', 'still waiting'],
} as const;

function ShadowChart({ rows, version, range }: { rows: Rows; version: number; range: Range }) {
    const shown = useMemo(() => {
        const { from } = axis(rows.gauge('at_ms'));
        const lasted = rows.gauge('lasted_ms').slice(from);
        const series = SHADOW_NAMES.map((name): Series => {
            const [colour, pattern, symbol, text] = LOOKS[name];
            const list = rows.total.column(`shadow_${name}`);
            return {
                name: text,
                symbol,
                colour,
                pattern,
                values: lasted.map((ms, at) => (ms > 0 ? ((list[from + at] ?? 0) * 1000) / ms : 0)),
            };
        });
        return { times: seconds(rows.gauge('at_ms'), from), series };
    }, [rows, version]);
    return (
        <Chart
            title={`Decisions that mode enforce would have taken for observed requests, per second; ${RANGE_TEXT[range]}`}
            {...shown}
            text={perSecond}
            height={170}
        />
    );
}
