// What needs a person, as a list with links.
import { attention } from '../attention';
import { useDocument } from '../document';
import { gatewayNow, revisions } from '../live';
import { Panel } from '../page';
import type { Status } from '../shapes';
import { use } from '../signal';

export function AttentionList({ status }: { status: Status | undefined }) {
    const changed = use(revisions);
    const elephants = useDocument('/v1/elephants', { revision: changed?.elephants, every: 30_000 });
    const policy = useDocument('/v1/policy', { revision: changed?.policy, every: 60_000 });
    const list = attention(status, elephants.value, policy.value, gatewayNow());
    return (
        <Panel title="What needs a person" kind="attention">
            {list.length === 0 ? (
                <p class="fine">
                    <span aria-hidden="true">✓</span> Nothing now.
                </p>
            ) : (
                <ul>
                    {list.map(one => (
                        <li key={one.text} class={one.kind}>
                            <span aria-hidden="true">{one.kind === 'bad' ? '▲' : '◆'}</span>
                            <span>{one.text}</span>
                            {one.href && <a href={one.href}>{one.does}</a>}
                        </li>
                    ))}
                </ul>
            )}
        </Panel>
    );
}
