// The view "What should I throttle?": resources and the requests that use them, the elephants that
// were found, and all routes.
import { useDocument } from '../document';
import { Detail } from '../elephants/detail';
import { List } from '../elephants/list';
import { Routes } from '../elephants/routes';
import { UseOf } from '../elephants/use-of';
import { count, lasting } from '../format';
import { revisions } from '../live';
import { Choice, Page, Panel } from '../page';
import { Problem } from '../problem';
import type { Elephants as Shown } from '../shapes';
import type { Seen } from '../shell';
import { use } from '../signal';
import { Resources } from '../elephants/resources';
import { href } from '../view';

export function Elephants({ place, elephants }: Seen) {
    const isRoutes = place.query.tab === 'routes';
    const tabs = (
        <Choice
            label="List"
            at={isRoutes ? 'All routes' : 'Elephants'}
            of={['Elephants', 'All routes'] as const}
            to={name => href('elephants', undefined, name === 'All routes' ? { tab: 'routes' } : {})}
        />
    );
    if (place.of !== undefined) return <Detail key={place.of} number={place.of} others={elephants?.elephants ?? []} />;
    if (isRoutes)
        return (
            <Page question="What should I throttle?" json={['/v1/routes']} tools={tabs}>
                <Routes />
            </Page>
        );
    return <All resource={place.query.resource} tabs={tabs} />;
}

function All({ resource, tabs }: { resource: string | undefined; tabs: preact.JSX.Element }) {
    const changed = use(revisions);
    const { value, problem, reload } = useDocument('/v1/elephants', { revision: changed?.elephants, every: 10_000 });
    const shown = resource ?? (value && usedMost(value));
    const of = shown === undefined ? '' : `?resource=${encodeURIComponent(shown)}`;
    return (
        <Page question="What should I throttle?" json={['/v1/elephants', `/v1/use${of}`, '/v1/audit']} tools={tabs}>
            <Problem of={problem} again={() => void reload()} />
            {value && (
                <>
                    <Panel
                        title="Elephants"
                        aside={
                            <span class="why">
                                {value.seen_s < 1
                                    ? 'no measurements yet'
                                    : `measured for ${lasting(value.seen_s * 1000)}; costs per request with 95 % intervals`}
                            </span>
                        }
                    >
                        <p class="note">
                            An elephant is a route that causes much of the load. A rule lets only a few of its requests
                            run at once, and other requests go first. Click an elephant to see what a rule would do. No
                            rule begins without an operator&rsquo;s approval, unless <code>elephants.act</code> is{' '}
                            <code>auto</code>.
                        </p>
                        <List elephants={value.elephants} seen={value.seen_s} isLooking={value.resources.length > 0} />
                        {value.missed > 0 && (
                            <p class="note">
                                {count(value.missed)} requests were not counted, because there were too many.
                            </p>
                        )}
                        {!value.kept && (
                            <p class="note">
                                Decisions are lost when this process ends, except at an upgrade in place, because the
                                configuration has no <code>state.directory</code>.
                            </p>
                        )}
                    </Panel>
                    <Resources of={value} shown={shown} />
                    {shown !== undefined && <UseOf resource={shown} revision={changed?.elephants} />}
                </>
            )}
        </Page>
    );
}

/**
 * Returns the name of the resource that the largest elephant uses; undefined if there is no
 * elephant.
 */
function usedMost({ elephants, resources }: Shown): string | undefined {
    const [largest] = elephants
        .flatMap(one => one.found ?? [])
        .filter(found => resources.some(one => one.name === found.resource))
        .sort((a, b) => b.share - a.share);
    return largest?.resource ?? (resources.find(one => one.used != null) ?? resources[0])?.name;
}
