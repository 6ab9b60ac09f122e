// The list of things that need attention, with links.
import { attention, ordersRefused, whyNothing } from '../attention';
import { useDocument } from '../document';
import { gatewayNow, revisions, rows, tick } from '../live';
import { Panel } from '../page';
import { pulse } from '../pulse';
import type { Elephants, Status } from '../shapes';
import { use } from '../signal';

export function AttentionList({ status, elephants }: { status: Status | undefined; elephants: Elephants | undefined }) {
    use(tick);
    const changed = use(revisions);
    const policy = useDocument('/v1/policy', { revision: changed?.policy, every: 60_000 });
    const list = attention(status, elephants, policy.value, gatewayNow(), ordersRefused(status, rows));
    const now = pulse(rows);
    return (
        <Panel title="Needs attention" kind="attention">
            {list.length === 0 ? (
                <p class="fine">
                    <span aria-hidden="true">✓</span> {whyNothing(now?.word, now?.isShadow ?? false)}
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
