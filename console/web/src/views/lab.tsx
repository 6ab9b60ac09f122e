// The view "What did the laboratory measure?": results of the laboratory, one alone or two side by
// side. They come from the folder that the configuration file names, or from a file of this
// computer.
import { useMemo, useState } from 'preact/hooks';
import type { Refused } from '../client';
import { useDocument } from '../document';
import { bytes, moment } from '../format';
import { Bars, Cells } from '../lab/cells';
import { Beside } from '../lab/beside';
import { readResult, readText, type Result } from '../lab/result';
import { Page, Panel } from '../page';
import { Problem } from '../problem';
import type { LabResults } from '../shapes';
import type { Seen } from '../shell';
import { type Column, Table } from '../table';
import { href } from '../view';

type Listed = LabResults['results'][number];
const address = (name: string): string => `/v1/lab/${encodeURIComponent(name)}`;

export function Lab({ place }: Seen) {
    const list = useDocument('/v1/lab', { every: 60_000 });
    const [opened, setOpened] = useState<{ name: string; result: Result | string }>();
    const first = useResult(place.of);
    const second = useResult(place.query.with);
    const shown =
        place.of === undefined
            ? opened
            : first.result !== undefined
              ? { name: place.of, result: first.result }
              : undefined;
    const beside =
        place.query.with !== undefined && second.result !== undefined
            ? { name: place.query.with, result: second.result }
            : place.of !== undefined
              ? opened
              : undefined;
    return (
        <Page
            question="What did the laboratory measure?"
            json={[
                '/v1/lab',
                ...(place.of ? [address(place.of)] : []),
                ...(place.query.with ? [address(place.query.with)] : []),
            ]}
            tools={<Open onOpened={setOpened} />}
        >
            <Problem of={list.problem ?? first.problem ?? second.problem} again={() => void list.reload()} />
            <Panel title="Results">
                {list.value && <Listing of={list.value} at={place.of} beside={place.query.with} />}
            </Panel>
            {shown && <Shown {...shown} />}
            {shown && beside && typeof shown.result !== 'string' && typeof beside.result !== 'string' && (
                <Panel title="Comparison">
                    <Beside left={shown.result} right={beside.result} names={[shown.name, beside.name]} />
                </Panel>
            )}
            {beside && beside !== shown && <Shown {...beside} />}
        </Page>
    );
}

function Listing({ of, at, beside }: { of: LabResults; at: string | undefined; beside: string | undefined }) {
    const columns: readonly Column<Listed>[] = [
        {
            id: 'name',
            head: 'Result',
            isText: true,
            by: one => one.name,
            cell: one => <span class="hostile">{one.name}</span>,
        },
        {
            id: 'written',
            head: 'Modified',
            isText: true,
            by: one => one.written_ms,
            cell: one => moment(one.written_ms, Date.now()),
        },
        { id: 'bytes', head: 'Size', by: one => one.bytes, cell: one => bytes(one.bytes) },
        {
            id: 'with',
            head: 'Compare',
            isText: true,
            cell: one =>
                at === undefined || one.name === at ? (
                    ''
                ) : one.name === beside ? (
                    <a href={href('lab', at)}>remove</a>
                ) : (
                    <a href={href('lab', at, { with: one.name })}>compare with {at}</a>
                ),
        },
    ];
    if (of.folder == null)
        return (
            <p class="empty">
                The configuration names no folder of results (<code>console.results</code>). Open a file from your
                computer instead.
            </p>
        );
    return (
        <>
            {of.trouble && <p class="problem">{of.trouble}</p>}
            <Table
                caption={`In ${of.folder}, the newest first`}
                columns={columns}
                rows={of.results}
                keyOf={one => one.name}
                hrefOf={one => href('lab', one.name)}
                selected={at}
                none="The folder has no results."
            />
        </>
    );
}

function Shown({ name, result }: { name: string; result: Result | string }) {
    return (
        <Panel title={<span class="hostile">{name}</span>}>
            {typeof result === 'string' ? (
                <p class="problem">{result}</p>
            ) : (
                <>
                    <Bars of={result} />
                    <Cells of={result} />
                </>
            )}
        </Panel>
    );
}

function Open({ onOpened }: { onOpened: (opened: { name: string; result: Result | string }) => void }) {
    const open = async (input: HTMLInputElement): Promise<void> => {
        const [file] = input.files ?? [];
        if (file) onOpened({ name: file.name, result: readText(await file.text()) });
    };
    return (
        <label class="open">
            Open a result from your computer{' '}
            <input type="file" accept=".json,application/json" onChange={event => void open(event.currentTarget)} />
        </label>
    );
}

/** Returns the result `name` of the gateway, once it has been read. */
function useResult(name: string | undefined): { result: Result | string | undefined; problem: Refused | undefined } {
    const { value, problem } = useDocument('/v1/lab/{name}', {
        filled: { name: name ?? '' },
        skip: name === undefined,
    });
    const result = useMemo(() => (value === undefined ? undefined : readResult(value)), [value]);
    return { result, problem: name === undefined ? undefined : problem };
}
