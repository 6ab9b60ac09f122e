// The dialogs about a link with a token that is opened while an operator is logged in. Any page may
// have led to such a link.
import { declined, offered, take } from './enter';
import { Dialog } from './dialog';
import { token } from './operator';
import { Problem } from './problem';
import { use } from './signal';
import { visible } from './visible';

/** Asks the operator whether the token of the link shall replace the token in use. */
export function Offer() {
    const next = use(offered);
    const here = use(token);
    if (!next) return null;
    const stay = (): void => offered.set(undefined);
    return (
        <Dialog title="Continue as another operator?" onClose={stay}>
            <p>
                A link contains a valid{next.decides ? '' : ', read-only'} token of <b>{visible(next.name)}</b>. You are
                logged in as <b>{visible(here?.name ?? 'nobody')}</b>. If you continue, your decisions are recorded in
                the other name. If you did not open such a link, stay.
            </p>
            <footer class="row end">
                <button type="button" onClick={() => take(next)}>
                    Continue as {visible(next.name)}
                </button>
                <button type="button" class="main" autofocus onClick={stay}>
                    Stay
                </button>
            </footer>
        </Dialog>
    );
}

/** Reports that the token of a link was not accepted. */
export function Declined() {
    const why = use(declined);
    if (!why) return null;
    return (
        <div class="declined">
            <Problem of={why} />
            <p>
                The link had no effect.{' '}
                <button type="button" onClick={() => declined.set(undefined)}>
                    Close
                </button>
            </p>
        </div>
    );
}
