// The decisions with their authors and reasons: the audit log, the newest first.
import { visible } from '../visible';
import { useDocument } from '../document';
import { moment } from '../format';
import { gatewayNow, revisions } from '../live';
import { authorOf, subjectOf, symbolOf } from '../marks';
import { Panel } from '../page';
import { Problem } from '../problem';
import type { Note } from '../shapes';
import { use } from '../signal';
import { type Column, Table } from '../table';
import { href } from '../view';

const COLUMNS: readonly Column<Note>[] = [
    { id: 'at', head: 'When', isText: true, cell: note => moment(Date.parse(note.at), gatewayNow()) },
    {
        id: 'what',
        head: 'Event',
        isText: true,
        cell: note => (
            <>
                <span aria-hidden="true">{symbolOf(note)}</span> {note.what}
            </>
        ),
    },
    {
        id: 'of',
        head: 'Subject',
        isText: true,
        isWide: true,
        cell: note => (
            <span class="hostile" title={subjectOf(note)}>
                {note.of === 'elephant' ? (
                    <a href={href('elephants', note.number)}>{subjectOf(note)}</a>
                ) : (
                    subjectOf(note)
                )}
            </span>
        ),
    },
    { id: 'by', head: 'Author', isText: true, cell: note => <span class="hostile">{authorOf(note)}</span> },
    {
        id: 'why',
        head: 'Reason',
        isText: true,
        isWide: true,
        cell: note => (
            <span class="hostile" title={visible(note.why)}>
                {visible(note.why)}
            </span>
        ),
    },
    {
        id: 'until',
        head: 'Until',
        isText: true,
        cell: note => (note.until ? moment(Date.parse(note.until), gatewayNow()) : '–'),
    },
];

export function History() {
    const changed = use(revisions);
    const { value, problem, reload } = useDocument('/v1/audit', { query: { limit: '100' }, revision: changed?.audit });
    return (
        <Panel title="Audit log">
            <Problem of={problem} again={() => void reload()} />
            <Table
                caption="The last 100 decisions and events, the newest first"
                columns={COLUMNS}
                rows={value?.notes ?? []}
                keyOf={note => `${note.at} ${note.what} ${subjectOf(note)}`}
                none="No decisions yet."
            />
            {value && !value.kept && (
                <p class="note">
                    The list is lost when this process ends, because the configuration has no{' '}
                    <code>state.directory</code>.
                </p>
            )}
        </Panel>
    );
}
