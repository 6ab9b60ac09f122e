// The view "Why was this request treated this way?": the last requests, and the details of one
// request.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useDocument } from '../document';
import { count } from '../format';
import { OUTCOMES } from '../outcome';
import { Page, Panel } from '../page';
import { replace } from '../place';
import { Problem } from '../problem';
import { REASONS, reasonText } from '../reason';
import { RequestLifecycle } from '../requests/life';
import { RequestTable } from '../requests/table';
import type { Status } from '../shapes';
import type { Seen } from '../shell';
import { href, type Place } from '../view';
import { visible } from '../visible';

const FOLLOWS = 2000;
const FILTERS = ['outcome', 'class', 'reason', 'rule', 'client'] as const;

export function Why({ place, status }: Seen) {
    if (place.of !== undefined) return <RequestLifecycle key={place.of} name={place.of} status={status} />;
    return <Last place={place} status={status} />;
}

function Last({ place: { query }, status }: { place: Place; status: Status | undefined }) {
    const isFollowed = query.follow !== 'no';
    const filters = Object.fromEntries(FILTERS.map(name => [name, query[name]]));
    const { value, problem, reload } = useDocument('/v1/requests', {
        query: { ...filters, limit: '100' },
        every: isFollowed ? FOLLOWS : undefined,
    });
    const search = new URLSearchParams(
        Object.entries({ ...filters, limit: '100' }).filter((pair): pair is [string, string] => !!pair[1]),
    );
    const change = (name: string, text: string | undefined): void =>
        replace(href('why', undefined, { ...query, [name]: text || undefined }));
    return (
        <Page question="Why was this request treated this way?" json={[`/v1/requests?${search}`]} tools={<Find />}>
            <Panel
                title="The last requests"
                aside={
                    <>
                        <Select
                            name="outcome"
                            at={query.outcome}
                            of={OUTCOMES.map(one => one.name)}
                            onChange={change}
                        />
                        <Select
                            name="class"
                            at={query.class}
                            of={status?.classes.map(one => one.name) ?? []}
                            onChange={change}
                        />
                        <Select name="reason" at={query.reason} of={REASONS} text={reasonText} onChange={change} />
                        {query.rule && (
                            <Only onEnd={() => change('rule', undefined)}>under the rule of elephant {query.rule}</Only>
                        )}
                        {query.client && (
                            <Only onEnd={() => change('client', undefined)}>from {visible(query.client)}</Only>
                        )}
                        <label class="checks">
                            <input
                                type="checkbox"
                                checked={isFollowed}
                                onChange={event => change('follow', event.currentTarget.checked ? undefined : 'no')}
                            />{' '}
                            update
                        </label>
                    </>
                }
            >
                <Problem of={problem} again={() => void reload()} />
                <RequestTable
                    caption={`The last ${count(value?.requests.length)} requests that have ended, the newest first${value ? `; ${count(value.remembered)} are remembered` : ''}${isFollowed ? '; updated every 2 s' : ''}`}
                    requests={value?.requests ?? []}
                />
            </Panel>
        </Page>
    );
}

const Only = ({ children, onEnd }: { children: ComponentChildren; onEnd: () => void }) => (
    <button type="button" onClick={onEnd}>
        {children} <span aria-hidden="true">✕</span>
        <span class="unseen">: remove this filter</span>
    </button>
);

function Find() {
    const [name, setName] = useState('');
    const go = (event: Event): void => {
        event.preventDefault();
        location.hash = href('why', name.trim().toLowerCase());
    };
    return (
        <form class="row" onSubmit={go}>
            <input
                type="search"
                aria-label="Name of a request: sixteen hexadecimal digits"
                placeholder="request, 16 hex digits ( / )"
                pattern="\s*[0-9a-fA-F]{16}\s*"
                title="Sixteen hexadecimal digits, as in the access log and the header field Bywash-Request"
                required
                value={name}
                onInput={event => setName(event.currentTarget.value)}
            />
            <button type="submit">Find</button>
        </form>
    );
}

function Select({
    name,
    at,
    of,
    text,
    onChange,
}: {
    name: string;
    at: string | undefined;
    of: readonly string[];
    /**
     * Returns the text of an option, if the text differs from the option's value. The value is then
     * shown as a tooltip.
     */
    text?: (one: string) => string;
    onChange: (name: string, text: string) => void;
}) {
    const all = at && !of.includes(at) ? [at, ...of] : of;
    return (
        <select aria-label={name} value={at ?? ''} onChange={event => onChange(name, event.currentTarget.value)}>
            <option value="">any {name}</option>
            {all.map(one => (
                <option key={one} value={one} title={text && one}>
                    {text?.(one) ?? one}
                </option>
            ))}
        </select>
    );
}
