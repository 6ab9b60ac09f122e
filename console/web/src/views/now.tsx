// The view "Are orders getting through?": a few numbers of the last minute, the outcomes of
// requests second by second, and the list of things that need attention.
import { useDocument } from '../document';
import { revisions } from '../live';
import { AttentionList } from '../now/attention-list';
import { Strip } from '../now/strip';
import { Tiles } from '../now/tiles';
import { Page } from '../page';
import type { Seen } from '../shell';
import { use } from '../signal';

export function Now({ status, elephants, place }: Seen) {
    const changed = use(revisions);
    const audit = useDocument('/v1/audit', { query: { limit: '100' }, revision: changed?.audit });
    return (
        <Page
            question="Are orders getting through?"
            json={['/v1/status', '/v1/history?range=15m', '/v1/elephants', '/v1/audit']}
        >
            <Tiles status={status} />
            <AttentionList status={status} elephants={elephants} />
            <Strip range={place.query.range} notes={audit.value?.notes ?? []} status={status} />
        </Page>
    );
}
