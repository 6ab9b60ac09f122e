// An error, with the text of the gateway.
import { visible } from './visible';
import { Refused } from './client';

export function Problem({ of, again }: { of: Refused | undefined; again?: () => void }) {
    if (!of) return null;
    return (
        <p class="problem" role="alert">
            <b>{WORDS[of.code] ?? 'Not done'}:</b> {visible(of.message)}{' '}
            {again && (
                <button type="button" onClick={again}>
                    Try again
                </button>
            )}
        </p>
    );
}

const WORDS: Record<string, string> = {
    conflict: 'Another operator has decided',
    not_found: 'Not found',
    unavailable: 'Not possible now',
    forbidden: 'Not allowed',
    unauthorised: 'Not allowed',
    expired: 'Token expired',
    unreachable: 'No answer',
};
