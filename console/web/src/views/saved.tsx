// The view "How much work was useful, and how much was saved?": useful and wasted work by class,
// the requests that were refused or stopped, and an estimate of the work that was saved.
import { useMemo } from 'preact/hooks';
import { useCourse } from '../course';
import { useDocument } from '../document';
import { count, duration, percent } from '../format';
import { revisions } from '../live';
import { Choice, Page, Panel } from '../page';
import { SavedTable } from '../saved/table';
import { savedByAll } from '../saved/estimate';
import { Terminations } from '../saved/terminations';
import { WorkChart } from '../saved/work';
import type { Seen } from '../shell';
import { use } from '../signal';
import { sums, usefulShare, WINDOW_NAMES, WINDOW_TEXT, windowNamed, WINDOWS } from '../sums';
import { Tile } from '../tile';
import { href } from '../view';

export function Saved({ place }: Seen) {
    const window = windowNamed(place.query.window ?? '15m');
    const { rows, version } = useCourse(window === '24h' ? '24h' : '15m');
    const changed = use(revisions);
    const policy = useDocument('/v1/policy', { revision: changed?.policy });
    const seen = useMemo(() => {
        const from = rows.since(WINDOWS[window]);
        return { from, all: sums(rows, rows.total, from), saved: savedByAll(rows, from) };
    }, [rows, version, window]);
    const { all, saved } = seen;
    const text = WINDOW_TEXT[window];
    const useful = usefulShare(all);
    return (
        <Page
            question="How much work was useful, and how much was saved?"
            json={[window === '24h' ? '/v1/history?range=24h' : '/v1/history?range=15m', '/v1/policy']}
            tools={
                <Choice
                    label="Window"
                    at={window}
                    of={WINDOW_NAMES}
                    to={window => href('saved', undefined, { window })}
                />
            }
        >
            <div class="tiles">
                <Tile
                    name="Useful work"
                    value={percent(useful)}
                    window={text}
                    beside={`${duration(all.usefulMs)} of service time`}
                    means="Service time of requests that were answered in time."
                    isFirst
                />
                <Tile
                    name="Wasted work"
                    value={percent(useful === undefined ? undefined : 1 - useful)}
                    window={text}
                    beside={`${duration(all.wastedMs)} of service time`}
                    means="Service time of all other requests."
                />
                <Tile
                    name="Saved, estimated"
                    value={duration(saved.ms)}
                    unit="of service time"
                    window={text}
                    beside={`${count(saved.requests)} requests`}
                    means="Work that was not started: an estimate, see below."
                />
                <Tile
                    name="Orphaned"
                    value={count(all.outcomes.orphaned)}
                    unit="requests"
                    window={text}
                    beside={`${count(all.leftWaiting)} of them never ran`}
                    means="Requests whose client left."
                />
                <Tile
                    name="Terminated"
                    value={count(all.outcomes.terminated)}
                    unit="requests"
                    window={text}
                    means="Requests that the gateway stopped while they ran."
                />
            </div>
            <p class="note">
                <b>The estimate</b> of the saved work counts requests that were shed, expired or throttled, and orphaned
                requests that never ran. Each counts with the mean service time of its class in this window. The
                estimate is too high where quick requests were refused.
            </p>
            <Panel title="By class">
                <SavedTable {...{ rows, version }} from={seen.from} window={text} />
            </Panel>
            <Panel title="Useful and wasted work">
                <WorkChart rows={rows} version={version} window={window} />
            </Panel>
            <Terminations
                rows={rows}
                version={version}
                terminate={policy.value?.terminate}
                cancellable={policy.value?.classes.filter(one => one.cancellable).map(one => one.name)}
                window={window}
            />
        </Page>
    );
}
