// An error, in the gateway's words.
import { visible } from './visible';
import { Refused } from './client';

export function Problem({ of, again }: { of: Refused | undefined; again?: () => void }) {
    if (!of) return null;
    return (
        <p class="problem" role="alert">
            <b>{WORDS[of.code] ?? 'Not done'}:</b> {visible(of.message)}{' '}
            {again && (
                <button type="button" onClick={again}>
                    Ask again
                </button>
            )}
        </p>
    );
}

const WORDS: Record<string, string> = {
    conflict: 'Somebody else has decided',
    not_found: 'Not found',
    unavailable: 'Not now',
    forbidden: 'Not allowed',
    unauthorised: 'Not allowed',
    expired: 'Too late',
    unreachable: 'No answer',
};
