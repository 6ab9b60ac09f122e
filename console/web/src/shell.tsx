// The frame around every view: the menu, the state of the gateway in one word, whether the page is
// up to date, and the operator.
import { visible } from './visible';
import { useEffect, useRef, useState } from 'preact/hooks';
import { proposals } from './attention';
import { closed } from './client';
import { Dialog } from './dialog';
import { useDocument } from './document';
import { clock, lasting } from './format';
import { LETTERS, listenToKeys } from './keys';
import { begin, connection, gatewayNow, heard, isStale, revisions, rows, tick } from './live';
import { Login } from './login';
import { Declined, Offer } from './offer';
import { forgetToken, mayNotDecide, name, token } from './operator';
import { place } from './place';
import { Problem } from './problem';
import { MEANS, pulse, type Pulse, SIGNS } from './pulse';
import type { Elephant, Elephants as Found, Status } from './shapes';
import { use } from './signal';
import { nextTheme, theme } from './theme';
import { href, type Place, type View, VIEWS } from './view';
import { Classes } from './views/classes';
import { Elephants } from './views/elephants';
import { Fleet } from './views/fleet';
import { Lab } from './views/lab';
import { Now } from './views/now';
import { Policy } from './views/policy';
import { Saved } from './views/saved';
import { Sessions } from './views/sessions';
import { Why } from './views/why';

export interface Seen {
    place: Place;
    status: Status | undefined;
    elephants: Found | undefined;
}

const NAMES: Record<View, string> = {
    now: 'Now',
    classes: 'Classes',
    why: 'Why',
    elephants: 'Elephants',
    saved: 'Saved',
    sessions: 'Sessions',
    policy: 'Policy',
    fleet: 'Fleet',
    lab: 'Lab',
};
const PAGES: Record<View, (seen: Seen) => preact.JSX.Element> = {
    now: Now,
    classes: Classes,
    why: Why,
    elephants: Elephants,
    saved: Saved,
    sessions: Sessions,
    policy: Policy,
    fleet: Fleet,
    lab: Lab,
};

export function Shell() {
    const at = use(place);
    const shut = use(closed);
    const [isHelp, setHelp] = useState(false);
    const status = useDocument('/v1/status', { every: 5000 });
    const changed = use(revisions);
    const elephants = useDocument('/v1/elephants', { revision: changed?.elephants, every: 30_000 });
    const proposed = proposals(elephants.value, gatewayNow());
    const main = useRef<HTMLElement>(null);
    useEffect(
        () =>
            listenToKeys(
                view => (location.hash = href(view)),
                () => setHelp(true),
            ),
        [],
    );
    useEffect(() => {
        if (status.value && !shut) begin();
    }, [status.value, shut]);
    useEffect(() => {
        document.title = `${NAMES[at.view]} · bywash`;
        main.current?.scrollTo(0, 0);
    }, [at.view]);
    const View = PAGES[at.view];
    return (
        <div class="shell">
            <a class="skip" href="#main" onClick={event => (event.preventDefault(), main.current?.focus())}>
                Skip to the content
            </a>
            <Bar status={status.value} proposed={shut ? [] : proposed} onHelp={() => setHelp(true)} />
            <Views at={at.view} asks={shut ? 0 : proposed.length} status={status.value} />
            <main id="main" ref={main} tabIndex={-1}>
                {shut ? (
                    <Login why={shut} />
                ) : (
                    <>
                        <Declined />
                        <Freshness />
                        {!status.value && status.problem && (
                            <Problem of={status.problem} again={() => void status.reload()} />
                        )}
                        <View place={at} status={status.value} elephants={elephants.value} />
                    </>
                )}
            </main>
            <Offer />
            {isHelp && <Keys onClose={() => setHelp(false)} />}
        </div>
    );
}

/** The views that the menu lists. That of the fleet is listed only if the gateway belongs to one. */
const listed = (status: Status | undefined): readonly View[] =>
    VIEWS.filter(view => view !== 'fleet' || status?.fleet !== undefined);

const Views = ({ at, asks, status }: { at: View; asks: number; status: Status | undefined }) => (
    <nav class="views" aria-label="Views">
        {listed(status).map(view => (
            <a key={view} href={href(view)} aria-current={view === at ? 'page' : undefined}>
                {NAMES[view]}{' '}
                {view === 'elephants' && asks > 0 && (
                    <span class="tag asks">
                        {asks}
                        <span class="unseen"> to decide</span>
                    </span>
                )}
                <kbd aria-hidden="true">g{LETTERS[view]}</kbd>
            </a>
        ))}
    </nav>
);

function Bar({
    status,
    proposed,
    onHelp,
}: {
    status: Status | undefined;
    proposed: readonly Elephant[];
    onHelp: () => void;
}) {
    const isShut = use(closed) !== undefined;
    const chosen = use(theme);
    return (
        <header class="bar">
            <a
                class="brand"
                href={href('now')}
                title={status && `bywash ${status.version}, process ${status.pid}, up for ${lasting(status.uptime_ms)}`}
            >
                bywash
            </a>
            <State />
            {status && <ModeBadge mode={status.mode} />}
            <ToDecide proposed={proposed} />
            <span class="space" />
            {!isShut && <Connected />}
            <Operator />
            <button type="button" class="quiet" onClick={nextTheme} title={`Colours: ${chosen}. Click to change them.`}>
                <span aria-hidden="true">{chosen === 'dark' ? '☾' : chosen === 'light' ? '☀' : '◑'}</span>
                <span class="unseen">Colours: {chosen}</span>
            </button>
            <button type="button" class="quiet" onClick={onHelp} title="Keyboard shortcuts">
                <span aria-hidden="true">?</span>
                <span class="unseen">Keyboard shortcuts</span>
            </button>
        </header>
    );
}

function State() {
    use(tick);
    const isOld = use(isStale) || use(connection).state !== 'connected';
    const now = pulse(rows);
    return (
        <>
            {now && (
                <a class={`state ${isOld ? 'old' : now.word.toLowerCase()}`} href={href('now')} title={spoken(now)}>
                    <span aria-hidden="true">{SIGNS[now.word]}</span> {isOld && 'was '}
                    {now.word}
                    <small>
                        {now.isShadow && 'if enforced, '}
                        {now.isLonger ? 'over ' : ''}
                        {lasting(now.ms)}
                    </small>
                </a>
            )}
            <span class="unseen" role="status">
                {now ? spoken(now) : ''}
            </span>
        </>
    );
}

const spoken = ({ word, isShadow }: Pulse): string =>
    `${word}${isShadow ? ' if classes were enforced' : ''}: ${MEANS[word]}`;

/** A link to the elephants that wait for a decision, on every page. */
function ToDecide({ proposed: [first, ...others] }: { proposed: readonly Elephant[] }) {
    return (
        <span role="status">
            {first && (
                <a
                    class="asks"
                    href={others.length > 0 ? href('elephants') : href('elephants', first.number)}
                    title="Elephants: requests that cause much of the load. A rule can hold them back."
                >
                    <span aria-hidden="true">◆</span> {others.length + 1} to decide
                </a>
            )}
        </span>
    );
}

const MODES: Record<string, [word: string, means: string]> = {
    observe: [
        'OBSERVING',
        'The gateway records its decisions and does not carry them out, except for classes in mode enforce.',
    ],
    enforce: ['ENFORCING', 'The gateway carries out its decisions, except for classes in mode observe.'],
    bypass: ['BYPASSED', 'The gateway makes no decisions: it is a plain proxy.'],
};

function ModeBadge({ mode }: { mode: string }) {
    const [word, means] = MODES[mode] ?? [mode.toUpperCase(), ''];
    return (
        <a class={`mode ${mode}`} href={href('policy')} title={means}>
            {word}
        </a>
    );
}

function Connected() {
    const { state, since, why } = use(connection);
    const stale = use(isStale);
    use(tick);
    if (state === 'connected' && !stale)
        return (
            <span class="connection" title="The gateway sends the figures of each second.">
                <span aria-hidden="true">●</span> <span class="word">connected</span>
            </span>
        );
    const words =
        state === 'connected'
            ? `no data since ${clock(heard.value)}`
            : state === 'connecting'
              ? 'connecting'
              : `reconnecting since ${clock(since)}`;
    return (
        <span class="connection lost" role="status" title={why}>
            <span aria-hidden="true">○</span> {words}
        </span>
    );
}

function Freshness() {
    const { state, why } = use(connection);
    const stale = use(isStale);
    if (heard.value === 0 || (state === 'connected' && !stale)) return null;
    return (
        <p class="stale">
            <b>Out of date:</b> this page shows values from {clock(heard.value)}. {why || 'The gateway sends no data.'}{' '}
            The page continues by itself when the gateway answers again.
        </p>
    );
}

function Operator() {
    const known = use(token);
    const called = use(name);
    if (!known) return called ? <span class="operator">{called}</span> : null;
    return (
        <span
            class="operator"
            title={`Your token is valid until ${new Date(known.expires).toLocaleString()}. ${mayNotDecide(known) ?? 'You can take decisions.'}`}
        >
            {visible(known.name)}
            {!known.decides && <small>read-only</small>}
            <button type="button" class="quiet" onClick={forgetToken} title="This tab forgets your token">
                log out
            </button>
        </span>
    );
}

const Keys = ({ onClose }: { onClose: () => void }) => (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
        <dl class="keys">
            {VIEWS.map(view => (
                <>
                    <dt>
                        <kbd>g</kbd> <kbd>{LETTERS[view]}</kbd>
                    </dt>
                    <dd>{NAMES[view]}</dd>
                </>
            ))}
            <dt>
                <kbd>/</kbd>
            </dt>
            <dd>go to the filter</dd>
            <dt>
                <kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd>
            </dt>
            <dd>move through the rows of a table, and open one</dd>
            <dt>
                <kbd>Esc</kbd>
            </dt>
            <dd>close the dialog</dd>
        </dl>
    </Dialog>
);
