// A chart of the requests that use a resource. For each elephant, it stacks the estimated cost
// times the number of requests that were worked on. The measured use is a line above the stack. The
// area between them is use that nothing explains, and stays visible.
import { visible } from '../visible';
import { useMemo } from 'preact/hooks';
import { axis } from '../axis';
import { Chart, type Series } from '../chart';
import { useDocument } from '../document';
import { clock, duration, lasting, percent } from '../format';
import { marksOf } from '../marks';
import type { Pattern } from '../outcome';
import { Panel } from '../page';
import { Problem } from '../problem';
import type { Note, Use } from '../shapes';

/** The resources that the gateway itself counts, request by request. */
const COUNTED = ['slots', 'bytes'];

const LOOKS: readonly [Pattern, string, string][] = [
    ['solid', '--throttled', '●'],
    ['falling', '--orphaned', '▲'],
    ['dots', '--expired', '■'],
    ['upright', '--terminated', '◆'],
    ['cross', '--late', '○'],
];

export function UseOf({
    resource,
    revision,
    notes = [],
}: {
    resource: string;
    revision: number | undefined;
    notes?: readonly Note[];
}) {
    const { value, problem, reload } = useDocument('/v1/use', { query: { resource }, revision, every: 10_000 });
    const shown = useMemo(() => value && drawn(value), [value]);
    return (
        <Panel title={<>Use of {resource}</>}>
            {!value && problem?.code === 'not_found' ? (
                <p class="note">{visible(problem.message)}</p>
            ) : (
                <Problem of={problem} again={() => void reload()} />
            )}
            {value && shown && (
                <>
                    <Chart
                        title={`Share of the capacity of ${resource}, in windows of ${duration(value.step_s * 1000)}, last 30 min`}
                        {...shown}
                        marks={marksOf(notes)}
                        text={percent}
                        height={220}
                    />
                    <p class="note">
                        {COUNTED.includes(resource)
                            ? 'These values are counted, not estimated. The grey area is all other requests.'
                            : 'Each area is an estimated cost times the requests that were worked on. The grey area is not explained by them: other requests, use by the resource itself, and errors. The line is the measured use.'}
                    </p>
                </>
            )}
        </Panel>
    );
}

function drawn(use: Use): { times: number[]; series: Series[]; note: string | undefined } {
    const { from, jump } = axis(use.at_ms);
    const routes = use.routes.slice(0, LOOKS.length).map((route, at): Series => {
        const [pattern, colour, symbol] = LOOKS[at]!;
        return {
            name: `${route.number}: ${visible(route.pattern)}`,
            symbol,
            colour,
            pattern,
            values: route.used.slice(from),
        };
    });
    const others = use.routes.slice(LOOKS.length);
    const rest = use.residual
        .slice(from)
        .map((left, at) => left + others.reduce((sum, route) => sum + (route.used[from + at] ?? 0), 0));
    return {
        times: use.at_ms.slice(from).map(ms => ms / 1000),
        series: [
            ...routes,
            {
                name: COUNTED.includes(use.resource) ? 'all others' : 'not explained',
                symbol: '▒',
                colour: '--residual',
                pattern: 'checks',
                values: rest,
            },
            {
                name: COUNTED.includes(use.resource) ? 'total' : 'measured',
                symbol: '─',
                isStepped: true,
                colour: '--ink',
                values: use.used.slice(from),
            },
        ],
        note:
            jump &&
            `The gateway's clock was set back by ${lasting(jump.ms)} at ${clock(jump.at)}. Earlier values are not drawn.`,
    };
}
