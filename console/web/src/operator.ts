// Who looks: the token and what it says, or, where none is needed (a socket that only the operator opens), a name that
// was asked for once. Both stay in this browser, under this origin.
import { Signal } from './signal';
import { readToken, tokenIn, type Token } from './token';

const TOKEN = 'bywash.token';
const NAME = 'bywash.name';

export const token = new Signal<Token | undefined>(readToken(kept(TOKEN)));
export const name = new Signal<string>(kept(NAME));

export function takeToken(pasted: string): boolean {
    const read = tokenIn(pasted);
    if (!read) return false;
    keep(TOKEN, read.text);
    token.set(read);
    return true;
}

export function forgetToken(): void {
    keep(TOKEN, '');
    token.set(undefined);
}

export function takeName(given: string): void {
    keep(NAME, given);
    name.set(given);
}

/** Another page of this browser may have got a newer token. */
export function watchOtherPages(): void {
    addEventListener('storage', event => {
        if (event.key === TOKEN) token.set(readToken(event.newValue ?? ''));
        if (event.key === NAME) name.set(event.newValue ?? '');
    });
}

/** Why this operator may not decide, if so. */
export const mayNotDecide = (of: Token | undefined): string | undefined =>
    of && !of.decides ? 'Your token only reads. `bywash console` prints a link that decides.' : undefined;

function kept(key: string): string {
    try {
        return localStorage.getItem(key) ?? '';
    } catch {
        return '';
    }
}

function keep(key: string, text: string): void {
    try {
        if (text) localStorage.setItem(key, text);
        else localStorage.removeItem(key);
    } catch {
        // Storage is switched off: it lasts as long as this page.
    }
}
