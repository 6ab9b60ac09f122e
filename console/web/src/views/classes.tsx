// The view "Which classes are affected, and why?": all classes in a selected window, or one class over time
// with its last decisions.
import { ClassDetail } from '../classes/detail';
import { ClassTable } from '../classes/table';
import { Filter } from '../filter';
import { count } from '../format';
import { Choice, Page, Panel } from '../page';
import { replace } from '../place';
import { href } from '../route';
import type { Seen } from '../shell';
import { WINDOW_NAMES, windowNamed } from '../sums';

export function Classes({ route, status }: Seen) {
    if (route.of !== undefined)
        return <ClassDetail key={route.of} name={route.of} range={route.query.range} status={status} />;
    return <All route={route} status={status} />;
}

function All({ route, status }: Pick<Seen, 'route' | 'status'>) {
    const window = windowNamed(route.query.window);
    const wanted = route.query.filter ?? '';
    const shown =
        status?.classes.filter(one =>
            `${one.name} ${one.tier} ${one.mode}`.toLowerCase().includes(wanted.toLowerCase()),
        ) ?? [];
    const to = (query: { window?: string; filter?: string }): string =>
        href('classes', undefined, { window: route.query.window, filter: wanted, ...query });
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
