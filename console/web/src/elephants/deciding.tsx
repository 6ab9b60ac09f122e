// The dialog of a decision about an elephant: approve, try, reject or undo, with what each changes.
import { gatewayNow } from '../live';
import { post } from '../client';
import { Decide, type DecisionMeta, SPANS, useSeen } from '../decide';
import type { Change, Elephant, Previewed } from '../shapes';
import { percent } from '../format';
import { visible } from '../visible';
import { Prediction } from './prediction';
import { limitsText, stateText } from './words';

export type Verb = 'approve' | 'try' | 'reject' | 'undo';
export interface Doing {
    verb: Verb;
    name: string;
    isMain?: boolean;
}

const WHYS: Record<Verb, readonly string[]> = {
    approve: ['Orders first during the peak', 'It uses up the resource and can wait', 'Agreed with its owners'],
    try: ['To find the cause', 'To measure before approving'],
    reject: ['This load is intended', 'Its owners are fixing it'],
    undo: ['The peak is over', 'It did harm', 'It was the wrong one'],
};
/**
 * The time after an undo in which no rule begins without an operator's approval. `bywash elephants
 * undo` has the same default.
 */
const LEFT_ALONE = '24h';
const NAMES: Record<Verb, string> = { approve: 'Approve', try: 'Try for 60 s', reject: 'Reject', undo: 'Undo' };
const SPANS_OF: Record<Exclude<Verb, 'undo'>, readonly string[]> = { approve: SPANS, try: ['60s'], reject: SPANS };

interface DecidingProperties {
    elephant: Elephant;
    doing: Doing;
    change: Change;
    preview: Previewed | undefined;
    reload: () => Promise<void>;
    onClose: () => void;
    onDone: () => void;
}

export function Deciding({ elephant, doing: { verb }, change, preview, reload, onClose, onDone }: DecidingProperties) {
    const seen = useSeen(elephant.revision);
    const act = async (meta: DecisionMeta): Promise<void> => {
        const sends = {
            ...meta,
            change: verb === 'approve' || verb === 'try' ? change : {},
            ...(verb === 'undo' ? { for: LEFT_ALONE } : {}),
            ...(seen.revision === undefined ? {} : { revision: seen.revision }),
        };
        const filled = { number: elephant.number };
        if (verb === 'approve') await post('/v1/elephants/{number}/approve', filled, sends);
        else if (verb === 'try') await post('/v1/elephants/{number}/try', filled, sends);
        else if (verb === 'reject') await post('/v1/elephants/{number}/reject', filled, sends);
        else await post('/v1/elephants/{number}/undo', filled, sends);
        onDone();
        await reload();
    };
    return (
        <Decide
            title={`${NAMES[verb]}: ${visible(elephant.pattern)}`}
            whys={WHYS[verb]}
            {...(verb === 'undo' ? {} : { spans: SPANS_OF[verb] })}
            verb={NAMES[verb]}
            act={act}
            onClose={onClose}
            onConflict={async () => {
                await reload();
                seen.tell();
            }}
            conflict={
                <p class="hostile">
                    <b>In force now:</b> {stateText(elephant, gatewayNow())}
                </p>
            }
        >
            <Changes {...{ elephant, verb, preview }} />
        </Decide>
    );
}

/** Explains that a rule applies to requests and not to a client. */
function forWhom({ found }: Elephant): string {
    const one = found?.one_client;
    const least = one
        ? ` Recently, ${one.address} caused ${one.at_least < 0.99 ? 'at least ' : ''}${percent(one.at_least)} of their service time.`
        : '';
    return `The rule applies to all of these requests, from any client.${least}`;
}

function Changes({ elephant, verb, preview }: { elephant: Elephant; verb: Verb; preview: Previewed | undefined }) {
    if (verb === 'reject')
        return (
            <p>
                The requests are not held back, and bywash proposes no rule again until the duration is over. Undo ends
                the rejection earlier.
            </p>
        );
    if (verb === 'undo')
        return (
            <p>
                The decision ends. As long as the requests cause much of the load, bywash proposes a rule. For 24 h, no
                rule begins without an operator&rsquo;s approval. To stop the proposals, choose Reject.
            </p>
        );
    return (
        <>
            <p>
                <b>The rule:</b> {preview ? limitsText(preview.limits) : '…'} Other requests go first.
            </p>
            <p>{forWhom(elephant)}</p>
            <Prediction elephant={elephant} preview={preview} isShort />
            <p class="note">
                {verb === 'try'
                    ? 'The trial ends after 60 s. The gateway compares the time before it with the time during it.'
                    : 'The rule ends after the duration below. Undo ends it at once.'}
            </p>
        </>
    );
}
