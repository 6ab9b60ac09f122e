// The list of measured resources, each with its use, or with the reason why it cannot be read. A
// click on a resource shows which requests use it.
import { visible } from '../visible';
import { lasting, percent } from '../format';
import type { Elephants } from '../shapes';
import { href } from '../view';

export function Resources({ of, shown }: { of: Elephants; shown: string | undefined }) {
    if (of.resources.length === 0)
        return (
            <p class="note">
                The configuration names no resource to measure. Add a table <code>[resource.NAME]</code> for a process,
                a host or a control group. The gateway counts slots and bytes without one.
            </p>
        );
    return (
        <ul class="resources" aria-label="Resources">
            {of.resources.map(one => (
                <li key={one.name}>
                    <a
                        href={href('elephants', undefined, { resource: one.name })}
                        aria-current={one.name === shown ? 'true' : undefined}
                    >
                        <b>{one.name}</b>
                        {one.trouble ? (
                            <span class="bad">
                                <span aria-hidden="true">▲</span> cannot be read: {visible(one.trouble)}
                            </span>
                        ) : (
                            <span>
                                {one.used == null ? (
                                    <small>not measured yet</small>
                                ) : (
                                    <>
                                        {percent(one.used)}{' '}
                                        <small>
                                            {one.name === 'slots' && one.used > 1
                                                ? 'of the current limit. The limit was higher before, or requests that are only observed run beyond it. Counted for '
                                                : 'of its capacity in use, measured for '}
                                            {lasting(one.seen_s * 1000)}
                                        </small>
                                    </>
                                )}
                            </span>
                        )}
                    </a>
                </li>
            ))}
        </ul>
    );
}
