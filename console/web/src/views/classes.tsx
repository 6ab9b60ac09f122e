// The view "Which classes are affected, and why?": all classes in a selected window, or one class over time
// with its last decisions.
import { ClassDetail } from '../classes/detail';
import { ClassTable } from '../classes/table';
import { Filter } from '../filter';
import { count } from '../format';
import { Choice, Page, Panel } from '../page';
import { replace } from '../place';
import type { Seen } from '../shell';
import { WINDOW_NAMES, windowNamed } from '../sums';
import { href } from '../view';

export function Classes({ place, status }: Seen) {
    if (place.of !== undefined)
        return <ClassDetail key={place.of} name={place.of} range={place.query.range} status={status} />;
    return <All place={place} status={status} />;
}

function All({ place, status }: Pick<Seen, 'place' | 'status'>) {
    const window = windowNamed(place.query.window);
    const wanted = place.query.filter ?? '';
    const shown =
        status?.classes.filter(one =>
            `${one.name} ${one.tier} ${one.mode}`.toLowerCase().includes(wanted.toLowerCase()),
        ) ?? [];
    const to = (query: { window?: string; filter?: string }): string =>
        href('classes', undefined, { window: place.query.window, filter: wanted, ...query });
    return (
        <Page
            question="Which classes are affected, and why?"
            json={['/v1/status', `/v1/history?window=${window}`]}
            tools={<Choice label="Window" at={window} of={WINDOW_NAMES} to={window => to({ window })} />}
        >
            <Panel
                title="Classes"
                aside={
                    <Filter label="Filter classes" value={wanted} onInput={filter => replace(to({ filter }))}>
                        {count(shown.length)} of {count(status?.classes.length)} classes
                    </Filter>
                }
            >
                <ClassTable classes={shown} window={window} />
            </Panel>
        </Page>
    );
}
